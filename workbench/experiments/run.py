"""Describe a run by the arguments of `workbench train`, and train it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from workbench.experiments.experiment import (
    configured,
    identity_of,
    reader,
    run_experiment,
    stages_of,
)
from workbench.methods import trained
from workbench.methods.bench import Bench, bench
from workbench.methods.method import MethodConfig
from workbench.runs.folder import check_identity, differences, finished, read_json
from workbench.types import JsonObject, WorkbenchError
from workbench.util.jsonl import json_digest
from workbench.util.subprocess import Background, start
from workbench.verdicts.llm_judge import NamedJudge, named_judge

STAGES = "stages"  # in a queue's folder: the stages that its runs share
LOG = "log.txt"  # in a run's folder: the output of its processes

KEYS = {  # key -> what its value must be, for errors
    "method": "a method's name",
    "seed": "an integer, or a list of integers",
    "bench": "a bench's name",
    "set": 'a list of settings "METHOD.FIELD=VALUE"',
    "steps": "an integer above 0",
    "questions": "a data set's name, or a file",
    "threads": "an integer above 0",
    "policy": "a model's folder or public name",
    "judge": "local, or the http address of an endpoint",
    "verifier": "the local judge's model",
    "judge_model": "the name of the endpoint's model",
    "store": "the name of an index of passages",
    "judge_cache": "a file",
    "judge_option": 'a list of fields "KEY=VALUE"',
    "judge_tokens": "an integer above 0",
    "name": "a text",
}
COUNTS, LISTS = ("steps", "threads", "judge_tokens"), ("set", "judge_option")


@dataclass(frozen=True)
class Entry:
    """The description of a run: the arguments of `workbench train`.

    `settings` has the values of `--set`. `name` is a label without effect on the training.
    """

    method: str
    seed: int = 0
    bench: str = "tiny"
    settings: Sequence[str] = ()
    steps: int | None = None
    questions: str | None = None
    threads: int | None = None
    name: str = ""
    policy: str | None = None
    judge: str | None = field(default=None, repr=False)  # its address may hold a password
    judge_model: str | None = None
    store: str | None = None
    judge_cache: str | None = None
    judge_option: Sequence[str] = ()
    judge_tokens: int | None = None
    verifier: str | None = None
    where: str = ""  # the file and the number of the run, for errors


def checked(row: Any, where: str) -> JsonObject:
    """Check the arguments of a run; return those that are not None.

    Args:
        row: the arguments as a dict, such as a table of a queue's file.
        where: the source of the arguments for error messages, such as "'seeds.toml', run 2".

    Raises:
        WorkbenchError: a key is unknown, or a value has the wrong type.
    """
    if not isinstance(row, dict):
        raise WorkbenchError(
            f"{where} is {row!r}, not a table: write a TOML table of {', '.join(KEYS)}"
        )
    row = {key: value for key, value in row.items() if value is not None}
    for key, value in row.items():
        if key not in KEYS:
            raise WorkbenchError(f"{where}: unknown key '{key}': use {', '.join(KEYS)}")
        if key == "seed":
            seeds = value if type(value) is list else [value]
            fits = bool(seeds) and all(type(seed) is int for seed in seeds)
        elif key in COUNTS:
            fits = type(value) is int and value > 0
        elif key in LISTS:
            fits = type(value) is list and all(type(one) is str for one in value)
        else:
            fits = type(value) is str
        if not fits:
            raise WorkbenchError(f"{where}: {key} is {value!r}: it must be {KEYS[key]}")
    return row


@dataclass(frozen=True)
class Run:
    """A run with valid arguments.

    Attributes:
        entry: the description of the run.
        identity: everything that determines the run's result.
        folder: folder of the run in a queue. Its name is the hash of the identity.
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
        """The stored summary of the run; None if it is not finished, or config.json is damaged.

        Only the training of a run with a damaged config.json fails, so that a queue trains the
        other runs.

        Raises:
            WorkbenchError: the folder contains a run with other inputs, such as another seed.
        """
        stored = read_json(self.folder / "config.json") or {}
        stored.pop("versions", None)
        if stored and (different := differences(stored, json.loads(json.dumps(self.identity)))):
            raise WorkbenchError(
                f"'{self.folder}' has another run ({'; '.join(different)}): move that folder away,"
                " or choose another --out"
            )
        return finished(self.folder) if stored else None

    def check(self, out: Path) -> None:
        """Raise a `WorkbenchError` if the folder `out` holds another run, or foreign files."""
        check_identity(out, self.identity, reader(trained(self.entry.method), self.bench, out))

    def train(self, out: Path, shared: Path | None = None) -> JsonObject:
        """Evaluate, train and evaluate again in the folder `out`; return the run's summary.

        Args:
            shared: folder in which several runs share the results of equal training stages, such
                as a cold start; None to share nothing.
        """
        return run_experiment(
            trained(self.entry.method),
            self.config,
            self.bench,
            out,
            seed=self.entry.seed,
            threads=self.entry.threads,
            shared=shared,
        )


def plan_run(
    entry: Entry,
    root: Path,
    open_bench: Callable[[str, str | None], Bench] | None = None,
    judge: NamedJudge | None = None,
) -> Run:
    """Check the description of a run, and return the run. It is not trained yet.

    Args:
        root: parent folder of the run's folder. The folder's name is a hash of the run's inputs.
        open_bench: (bench's name, data set or question file or None) -> bench; None for
            `methods.bench.bench`. A queue passes a cached function, so that each data set is read
            once.
        judge: judge that replaces the bench's judge; None for the judge that `entry` names.

    Raises:
        WorkbenchError: an argument is invalid.
    """
    judge = judge or named_judge(
        entry.judge,
        entry.judge_model,
        entry.store,
        entry.judge_cache,
        entry.judge_option,
        entry.judge_tokens,
        entry.verifier,
    )
    chosen, place = trained(entry.method), (open_bench or bench)(entry.bench, entry.questions)
    place = place.with_policy(entry.policy).with_judge(judge)
    config = configured(chosen, place, entry.steps, entry.settings)
    stages = stages_of(chosen, config, place, entry.seed)
    identity = identity_of(chosen, config, place, seed=entry.seed, threads=entry.threads)
    missing = [name for name, value in chosen.input_digests(config, place).items() if value is None]
    identity |= _stored_digests(identity, missing, root) if missing else {}
    return Run(entry, identity, root / json_digest(identity), stages[-1].steps, config, place)


def _stored_digests(identity: JsonObject, missing: Sequence[str], root: Path) -> JsonObject:
    """Return the digests of input files that no longer exist, from an equal run below `root`.

    With these digests, the run gets the same hash as before. A stored run is equal if all values
    of its identity except those of the keys `missing` are equal. Without such a run, return {}.
    """
    wanted = json.loads(json.dumps(identity))
    for stored in filter(None, map(read_json, sorted(root.glob("*/config.json")))):
        keys = {*stored, *wanted} - {"versions", *missing}
        if all(stored.get(key) == wanted.get(key) for key in keys):
            return {name: stored[name] for name in missing if name in stored}
    return {}


def start_training(entry: Entry, out: Path, queued: bool = False) -> Background:
    """Start a new process that trains a run in the folder `out`, and return the process.

    The output of the process is appended to log.txt in `out`. `queued` is True if a queue trains
    the run, which then shares its training stages with the other runs of the queue.
    """
    out.mkdir(parents=True, exist_ok=True)
    return start(
        train_entry, {"entry": asdict(entry), "out": str(out), "queued": queued}, out / LOG
    )


def train_entry(entry: JsonObject, out: str, queued: bool) -> None:
    """Train a run in the folder `out`. `start_training` calls this function in the new process.

    Args:
        entry: the fields of the run's `Entry`.
        queued: whether a queue trains the run. Then the name of `out` is the hash of the run's
            inputs, and the run shares training stages with the runs in the same parent folder.

    Raises:
        WorkbenchError: a queued run has another hash now, because code, policy or questions have
            changed, or the run cannot be trained.
    """
    folder = Path(out)
    run = plan_run(Entry(**entry), folder.parent)
    if queued and run.hash != folder.name:
        raise WorkbenchError(
            f"the run's hash is {run.hash}, no longer {folder.name}: code, policy or questions"
            " have changed; queue it again"
        )
    run.train(folder, folder.parent / STAGES if queued else None)
