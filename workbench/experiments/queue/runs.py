"""The runs of a queue: their identities, folders and results."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from workbench.experiments.experiment import configured, identity_of, run_experiment, stages_of
from workbench.experiments.queue.entries import Entry, read_entries
from workbench.methods import trained
from workbench.methods.bench import Bench, bench
from workbench.methods.method import MethodConfig
from workbench.runs.folder import differences, finished, read_json
from workbench.types import JsonObject, WorkbenchError
from workbench.util.jsonl import json_digest
from workbench.verdicts.llm_judge import named_judge

ROOT = Path("runs/queue")
STAGES = "stages"  # folder of shared stages
QUICK_STEPS = 2  # training steps of a run with `--quick`
FAILED = "failed.json"  # in a run's folder: the error of its last process

Open = Callable[[str, str | None], Bench]  # (name, questions) -> bench


@dataclass(frozen=True)
class Run:
    """A run of a queue.

    Attributes:
        entry: the description of the run.
        identity: everything that determines the run's result. Its hash names the folder.
        folder: folder of the run.
        steps: number of training steps of the last stage; None if not known.
    """

    entry: Entry
    identity: JsonObject
    folder: Path
    steps: int | None
    config: MethodConfig = field(repr=False)
    bench: Bench = field(repr=False)

    @property
    def hash(self) -> str:
        return self.folder.name

    @property
    def summary(self) -> JsonObject | None:
        """The stored summary of the run; None if it is not finished.

        Raises:
            WorkbenchError: the folder contains another run.
        """
        stored = read_json(self.folder / "config.json") or {}
        stored.pop("versions", None)
        if stored and (different := differences(stored, json.loads(json.dumps(self.identity)))):
            raise WorkbenchError(
                f"'{self.folder}' has another run ({'; '.join(different)}): move that folder away,"
                " or choose another --out"
            )
        return finished(self.folder) if stored else None


def queue_runs(file: Path | str, root: Path | str = ROOT, quick: bool = False) -> list[Run]:
    """Return all runs of a queue's file in order, trained or not. Equal runs have the same folder.

        for run in queue_runs("seeds.toml"):
            print(run.entry.name, run.entry.seed, run.summary and run.summary["seconds"])

    Args:
        root: folder with a subfolder for each run.
        quick: True returns short test runs: `QUICK_STEPS` steps and a greedy evaluation, in folders
            of their own.

    Raises:
        WorkbenchError: the file cannot be read, or a run in it has an invalid setting.
    """
    open_bench = cache(bench)  # reads each data set once
    runs = []
    for entry in read_entries(Path(file)):
        try:
            runs.append(plan_run(shortened(entry) if quick else entry, Path(root), open_bench))
        except WorkbenchError as error:
            raise WorkbenchError(f"{entry.where}: {error}") from None
    return runs


def plan_run(entry: Entry, root: Path, open_bench: Open = bench) -> Run:
    """Check the description of a run, and return the run. It is not trained yet.

    Args:
        entry: the description of the run.
        root: folder in which the run gets its folder.
        open_bench: function that returns a bench by its name and its questions.

    Raises:
        WorkbenchError: a setting is invalid.
    """
    judge = named_judge(
        entry.judge,
        entry.judge_model,
        entry.store,
        entry.judge_cache,
        entry.judge_option,
        entry.judge_tokens,
        entry.verifier,
    )
    chosen, place = trained(entry.method), open_bench(entry.bench, entry.questions)
    place = place.with_policy(entry.policy).with_judge(judge)
    config = configured(chosen, place, entry.steps, entry.settings)
    stages = stages_of(chosen, config, place, entry.seed)
    identity = identity_of(chosen, config, place, seed=entry.seed, threads=entry.threads)
    missing = [name for name, value in chosen.input_digests(config, place).items() if value is None]
    identity |= _stored_values(identity, missing, root) if missing else {}
    return Run(entry, identity, root / json_digest(identity), stages[-1].steps, config, place)


def _stored_values(identity: JsonObject, missing: Sequence[str], root: Path) -> JsonObject:
    """Return the digests of input files that no longer exist, from an equal stored run.

    With these digests, the run gets the same hash as before. Return {} if no stored run is equal.

    Args:
        identity: identity of the run. A stored run is equal if all keys but `missing` are equal.
        missing: keys of the missing digests.
        root: folder of the stored runs.
    """
    wanted = json.loads(json.dumps(identity))
    for stored in filter(None, map(read_json, sorted(root.glob("*/config.json")))):
        keys = {*stored, *wanted} - {"versions", *missing}
        if all(stored.get(key) == wanted.get(key) for key in keys):
            return {name: stored[name] for name in missing if name in stored}
    return {}


def distinct(runs: Iterable[Run]) -> list[Run]:
    """Return one run per hash: the last of the runs with this hash."""
    return list({run.hash: run for run in runs}.values())


def train_entry(entry: JsonObject, root: str, hash: str) -> None:
    """Train one run of a queue. The queue calls this function in a new process for each run.

    Args:
        entry: the fields of the run's `Entry`.
        root: folder of the queue's runs.
        hash: the hash that the run must have.

    Raises:
        WorkbenchError: the run's hash is no longer `hash`, because code, policy or questions have
            changed, or the run cannot be trained.
    """
    run = plan_run(Entry.of(entry), Path(root))
    if run.hash != hash:
        raise WorkbenchError(
            f"the run's hash is {run.hash}, no longer {hash}: code, policy or questions have"
            " changed; queue it again"
        )
    train_run(run, run.folder, Path(root) / STAGES)


def train_run(run: Run, out: Path, shared: Path | None = None) -> JsonObject:
    """Train a run in the folder `out`, and return its summary.

    `shared` is a folder of finished stages that several runs use; see `run_experiment`.
    """
    return run_experiment(
        trained(run.entry.method),
        run.config,
        run.bench,
        out,
        seed=run.entry.seed,
        threads=run.entry.threads,
        shared=shared,
    )


def shortened(entry: Entry) -> Entry:
    """Return a short version of an entry for a test.

    The run has `QUICK_STEPS` training steps, and its evaluations sample no answers.
    """
    chosen = trained(entry.method)
    last = chosen.with_steps(chosen.configure(entry.bench, entry.settings), QUICK_STEPS)
    return replace(
        entry, steps=None, settings=(*entry.settings, *last, f"{entry.method}.eval_samples=0")
    )
