"""The runs of a queue: what identifies each, its folder and its result."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from workbench.experiments.experiment import configured, identity_of, run_experiment, stages_of
from workbench.experiments.queue.entries import Entry, read_entries
from workbench.methods import trained
from workbench.methods.bench import Bench, bench
from workbench.runs.folder import differences, finished, read_json
from workbench.types import WorkbenchError
from workbench.verdicts.llm_judge import llm_judge

ROOT = Path("runs/queue")
STAGES = "stages"  # folder of the stages that several runs share
QUICK_STEPS = 2  # of `--quick`
FAILED = "failed.json"  # in a run's folder: why its last process ended without a result
HASH = 12  # characters

Open = Callable[[str, str | None], Bench]  # a bench's name, and its questions' -> the bench


@dataclass(frozen=True)
class Run:
    """A run that can be trained. `hash`, that of its `identity`, names its folder; `steps` are
    those of its last stage.
    """

    entry: Entry
    identity: dict[str, Any]
    folder: Path
    steps: int | None
    config: Any = field(repr=False)
    bench: Bench = field(repr=False)

    @property
    def hash(self) -> str:
        return self.folder.name

    @property
    def summary(self) -> dict[str, Any] | None:
        """What `summary.json` holds; None until the run is done.

        Raises:
            WorkbenchError: something else lies in the folder.
        """
        stored = read_json(self.folder / "config.json") or {}
        stored.pop("versions", None)
        if stored and (different := differences(stored, json.loads(json.dumps(self.identity)))):
            raise WorkbenchError(
                f"'{self.folder}' holds another run ({'; '.join(different)}): move it away"
            )
        return finished(self.folder) if stored else None


def queue_runs(file: Path | str, root: Path | str = ROOT, quick: bool = False) -> list[Run]:
    """Every run of a queue's file in its order, trained or not; equal ones share a folder.

        for run in queue_runs("seeds.toml"):
            print(run.entry.name, run.entry.seed, run.summary and
            run.summary["after"]["greedy"]["truthfulness"]["value"])

    Args:
        quick: each with `QUICK_STEPS` steps and a greedy evaluation, which makes them other runs.

    Raises:
        WorkbenchError: naming the file's run that cannot work, and why.
    """
    open_bench = cache(bench)  # a data set is read once
    runs = []
    for entry in read_entries(Path(file)):
        try:
            runs.append(planned(shortened(entry) if quick else entry, Path(root), open_bench))
        except WorkbenchError as error:
            raise WorkbenchError(f"{entry.where}: {error}") from None
    return runs


def run_of(
    method: str,
    seed: int = 0,
    bench_name: str = "tiny",
    settings: Sequence[str] = (),
    *,
    steps: int | None = None,
    questions: str | None = None,
    threads: int | None = None,
    root: Path | str = ROOT,
    **others: str,
) -> Run:
    """The run of this description, also one that a queue or another script has trained.

        run_of("truthrl", seed=1, settings=["truthrl.reward=binary"]).summary

    Args:
        others: further fields of an `Entry`: its policy and its judge.

    Raises:
        WorkbenchError: the run cannot work.
    """
    return planned(
        Entry(method, seed, bench_name, tuple(settings), steps, questions, threads, **others),
        Path(root),
    )


def planned(entry: Entry, root: Path, open_bench: Open = bench) -> Run:
    """An entry as a run: configured, checked, and with its place below `root`.

    Raises:
        WorkbenchError: whatever `workbench train` would refuse.
    """
    judge = llm_judge(entry.judge, entry.judge_model, entry.store, entry.judge_cache)
    chosen, place = trained(entry.method), open_bench(entry.bench, entry.questions)
    place = place.with_policy(entry.policy).with_judge(judge)
    config = configured(chosen, place, entry.steps, entry.settings)
    stages = stages_of(chosen, config, place, entry.seed)
    identity = identity_of(chosen, config, place, seed=entry.seed, threads=entry.threads)
    gone = [name for name, now in chosen.input_digests(config, place).items() if now is None]
    identity |= _as_begun(identity, gone, root) if gone else {}
    return Run(entry, identity, root / hash_of(identity), stages[-1].steps, config, place)


def _as_begun(identity: dict[str, Any], gone: Sequence[str], root: Path) -> dict[str, Any]:
    """The values of the keys `gone` in the stored run that agrees on everything else, if any."""
    wanted = json.loads(json.dumps(identity))
    for stored in filter(None, map(read_json, sorted(root.glob("*/config.json")))):
        if not [
            key
            for key in {*stored, *wanted} - {"versions", *gone}
            if stored.get(key) != wanted.get(key)
        ]:
            return {name: stored[name] for name in gone if name in stored}
    return {}


def hash_of(identity: dict[str, Any]) -> str:
    """The name of a run's folder: the digest of everything that makes it the run it is."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:HASH]


def distinct(runs: Iterable[Run]) -> list[Run]:
    """Each run once; of equal ones the last, whose name counts."""
    return list({run.hash: run for run in runs}.values())


def train_entry(entry: dict[str, Any], root: str, hash: str) -> None:
    """Train a run, in a process of its own.

    Raises:
        WorkbenchError: the run is no longer the one that was planned, or cannot be trained.
    """
    run = planned(Entry.of(entry), Path(root))
    if run.hash != hash:
        raise WorkbenchError(
            f"the run is {run.hash} and no longer {hash}: code, policy or questions have changed,"
            " queue it again"
        )
    train_run(run, run.folder, Path(root) / STAGES)


def train_run(run: Run, out: Path, shared: Path | None = None) -> dict[str, Any]:
    """`run_experiment` of a planned run."""
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
    """The same run with `QUICK_STEPS` steps, after its own settings."""
    chosen = trained(entry.method)
    last = chosen.with_steps(chosen.configure(entry.bench, entry.settings), QUICK_STEPS)
    return replace(
        entry, steps=None, settings=(*entry.settings, *last, f"{entry.method}.eval_samples=0")
    )
