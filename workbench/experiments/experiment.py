"""An experiment: evaluate, train a method's stages, evaluate again, and store all in one folder.

before.json -> stages/NAME, one folder for each stage before the last -> the last stage in the
folder itself -> summary.json
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from workbench.experiments.evaluate import evaluate_policy
from workbench.methods import TRAINED, trained
from workbench.methods.bench import DEFAULT_POLICY, START_FILE, Bench, bench, check_policy
from workbench.methods.method import Method, Prompts, check_evidence, check_prompts
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.folder import finished, lock, open_run, policy_hash, read_json, versions
from workbench.runs.shared import Shared
from workbench.training.loading import check_four_bits, import_unsloth_first
from workbench.training.stage import Job, Stage
from workbench.types import Cost, WorkbenchError
from workbench.util.config import leaves, restore, settings
from workbench.util.failures import TooManyFailures
from workbench.util.jsonl import iter_rows, write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.verdicts.llm_judge import LLMJudge

MAX_FAILED = (
    0.2  # share of ungraded answers that fails an evaluation, unless a trainer sets its own
)
# of a run's identity, in its summary
SUMMARY = (
    *("method", "config", "seed", "threads", "questions_hash", "judge", "bench", "policy"),
    *("world_hash", "policy_hash"),
)


def train(
    method: str,
    bench_name: str,
    seed: int,
    out: Path,
    steps: int | None = None,
    threads: int | None = None,
    overrides: Sequence[str] = (),
    questions: str | Path | None = None,
    *,
    policy: str | None = None,
    judge: LLMJudge | None = None,
) -> dict[str, Any]:
    """`run_experiment` by names, as the command line gives them.

    Args:
        steps: training steps instead of the number at this scale.
        overrides: settings "method.field=value".
        questions: the data set or question file of a bench that has no questions of its own.
        policy: what to start from instead of the bench's own policy: a model's folder or hub name.
        judge: the language model that judges, off the tiny bench; by default rules do.

    Raises:
        WorkbenchError: before any work, for whatever in the arguments or the folder cannot work.
    """
    chosen, place = (
        trained(method),
        bench(bench_name, questions=questions).with_policy(policy).with_judge(judge),
    )
    _check_trains(chosen)
    config = configured(chosen, place, steps, overrides)
    return run_experiment(chosen, config, place, out, seed=seed, threads=threads)


def configured(
    method: Method, bench: Bench, steps: int | None = None, overrides: Sequence[str] = ()
) -> Any:
    """The method's config at the bench's scale, with `steps` and then `overrides` applied."""
    config = method.configure(bench.name, overrides)
    if steps is None:
        return config
    return method.configure(bench.name, [*method.with_steps(config, steps), *overrides])


def run_experiment(
    method: Method,
    config: Any,
    bench: Bench,
    out: Path,
    *,
    seed: int,
    threads: int | None = None,
    shared: Path | None = None,
) -> dict[str, Any]:
    """Evaluate, train, evaluate again; everything is kept in `out` and the summary is returned.

    The same call on an unfinished `out` continues it and ends as it would have ended; on a
    finished one it returns the stored summary. `status` is "done", "interrupted" or
    "too_many_failures".

    Args:
        threads: CPU threads; by default those the folder was begun with, or 2. Part of what
        makes runs equal.
        shared: a folder for stages that runs have in common. What one cost is in the totals of
        each run that rests on it, its
            seconds only in those of the run that made it.

    Raises:
        WorkbenchError: before any work, for whatever in the arguments or the folder cannot work.
    """
    check_alone()
    bench = begun(method, config, bench).with_cache_dir(out)
    stages = stages_of(method, config, bench, seed)
    stored = read_json(out / "config.json") or {}
    identity = identity_of(
        method, config, bench, seed=seed, threads=threads or stored.get("threads"), stored=stored
    )
    if not finished(out):
        for stage in (stage for stage in stages if not finished(out / "stages" / stage.name)):
            stage.check(bench.path(bench.policy))
        if bench.llm_judge:
            bench.llm_judge.try_out()
    with lock(out):
        summary = open_run(
            out,
            identity,
            versions(),
            read=lambda stored: _in_parts(stored, method.configure(bench.name), out),
        )
        if summary is not None:
            print(f"'{out}' is finished: this is its stored summary", file=sys.stderr)
            return summary
        kept = Shared(shared, identity) if shared else None
        run = _Run(config.prompts, bench, out, identity, max_failed(method, config), kept)
        return run.through(stages, bench.path(bench.policy))


def check_alone() -> None:
    """Raise a WorkbenchError in one of several processes of a launcher: each would write the run's
    folder.
    """
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        raise WorkbenchError(
            "a run with its evaluations is one process: leave out the launcher, or launch a script"
            " that runs the last stage alone, as docs/scaling.md has one"
        )


def begun(method: Method, config: Any, bench: Bench) -> Bench:
    """The bench with the checkpoint that the method starts from, unless a policy is named."""
    return (
        bench.with_policy(method.training(config).start)
        if bench.policy == DEFAULT_POLICY
        else bench
    )


def max_failed(method: Method, config: Any) -> float:
    """The share of ungraded answers that the config's trainer allows, else the largest share that
    another part in use allows.
    """
    training = method.training(config)
    idle = {leaf for path in training.idle for leaf in leaves(config, path)}
    used = {
        name: value
        for name, value, _ in settings(config)
        if name.endswith(".max_failed") and name not in idle
    }
    trainer = f"{training.trainer}.sampling.max_failed"
    return used.get(trainer, max(used.values(), default=MAX_FAILED))


def identity_of(
    method: Method,
    config: Any,
    bench: Bench,
    *,
    seed: int,
    threads: int | None = None,
    stored: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """What identifies a run: runs of equal identity end alike, and share a folder.

    Args:
        stored: the stored identity of a run: values whose source is gone are taken from it.

    Raises:
        WorkbenchError: the policy to start from is not there.
    """
    bench = begun(method, config, bench)
    start = bench.path(bench.policy)
    check_policy(bench.policy, start)
    beside = bench.questions_hash((*config.prompts.trained(), *config.prompts.evaluated()))
    return {
        "method": method.name,
        "config": asdict(config),
        "seed": seed,
        "bench": bench.name,
        "policy": bench.policy,
        "threads": threads or DEFAULT_THREADS,
        "world_hash": bench.hash,
        "policy_hash": policy_hash(start),
        **({"questions_hash": beside} if beside else {}),
        **({"judge": bench.llm_judge.identity()} if bench.llm_judge else {}),
        **{
            name: stored.get(name) if now is None else now
            for name, now in method.input_digests(config, bench).items()
        },
    }


def _in_parts(stored: dict[str, Any], usual: Any, out: Path) -> dict[str, Any]:
    """A stored identity with its config in today's form; newer fields have their defaults."""
    config = stored.get("config", {})
    if not isinstance(config, Mapping):
        raise WorkbenchError(
            f"'{out / 'config.json'}' is damaged: mend it, or choose another --out folder"
        )
    return {**stored, "config": asdict(restore(usual, config))}


def stages_of(method: Method, config: Any, bench: Bench, seed: int) -> Sequence[Stage]:
    """The method's stages, ready to run.

    Raises:
        WorkbenchError: whatever cannot work: a method that is not trained, a seed, settings,
        questions that are not there.
    """
    _check_trains(method)
    assert method.stages is not None
    if not 0 <= seed < 2**32:
        raise WorkbenchError(f"the seed is {seed}: it must lie between 0 and {2**32 - 1}")
    bench = begun(method, config, bench)
    check_prompts(config.prompts, bench)
    check_evidence(method, config, bench)
    check_four_bits(config, method.training(config).idle)
    return method.stages(config, bench)


def _check_trains(method: Method) -> None:
    if method.stages is None:
        able = ", ".join(name for name, one in TRAINED.items() if one.stages)
        raise WorkbenchError(
            f"method '{method.name}' pays rewards but cannot be trained yet: choose one of {able}"
        )


@dataclass(frozen=True)
class _Run:
    """A run in progress."""

    prompts: Prompts
    bench: Bench
    out: Path
    identity: Mapping[str, Any]
    max_failed: float
    shared: Shared | None = None

    def through(self, stages: Sequence[Stage], start: str) -> dict[str, Any]:
        """Evaluate, train the stages, evaluate, and write the summary whatever happened."""
        began, earlier = time.perf_counter(), earlier_seconds(self.out)
        before, after, status = read_json(self.out / "before.json"), None, "interrupted"
        try:
            with use_threads(self.identity["threads"]):
                if not any(stage.plain for stage in stages):
                    import_unsloth_first()
                if before is None:
                    before = self.evaluate(self.bench.policy)
                    write_json(self.out / "before.json", before)
                if self.train(stages, start):
                    name = f"{self.bench.policy}+{self.identity['method']}"
                    after = {**self.evaluate(str(self.out)), "policy": name}
                    status = "done"
        except KeyboardInterrupt:
            status = "interrupted"
        except TooManyFailures as error:
            print(f"stopped: {error}", file=sys.stderr)
            status = "too_many_failures"
        summary = {
            **{key: self.identity[key] for key in SUMMARY if key in self.identity},
            "versions": versions(),
            "before": before,
            "after": after,
            "seconds": round(earlier + time.perf_counter() - began, 1),
            **totals(sorted(self.out.rglob("rollouts.jsonl")), self.identity["method"]),
            "status": status,
        }
        write_json(self.out / "summary.json", summary)
        return summary

    def train(self, stages: Sequence[Stage], start: str) -> bool:
        """Run the stages that are not done; False if one was interrupted."""
        *earlier, last = stages
        folders = {stage.name: self.out / "stages" / stage.name for stage in earlier}
        seed = self.identity["seed"]
        for number, (name, folder) in enumerate(folders.items(), start=1):
            if not self._finished(earlier[:number], Job(start, folder, seed, folders)):
                return False
            policy = folder / "policy"
            if policy.is_dir():  # the next stage starts from the policy that this one has made
                start = str(policy)
                write_json(self.out / START_FILE, {"start": f"stages/{name}/policy"})
        return last.run(Job(start, self.out, seed, folders)) == "done"

    def _finished(self, stages: Sequence[Stage], job: Job) -> bool:
        """Run the last of these stages, unless it is done here or another run shares it."""
        stage, place = stages[-1], None
        if finished(job.out):
            return True
        if self.shared and not any(one.cache_key is None for one in stages):
            place = self.shared.folder([(one.name, one.cache_key) for one in stages])
            if self.shared.take(place, job.out):
                print(f"stage '{stage.name}' → {job.out}, from {place}", file=sys.stderr)
                return True
        print(f"stage '{stage.name}' → {job.out}", file=sys.stderr)
        job.out.mkdir(parents=True, exist_ok=True)
        began = time.perf_counter()
        status = stage.run(job)
        seconds = round(time.perf_counter() - began, 1)
        summary = {"stage": stage.name, "seconds": seconds, "status": status}
        write_json(job.out / "summary.json", summary)
        if self.shared and place and status == "done":
            self.shared.keep(place, job.out)
        return status == "done"

    def evaluate(self, policy: str) -> dict[str, Any]:
        """Evaluate a policy on the run's questions with the run's system prompt."""
        return evaluate_policy(
            policy,
            self.prompts.eval_split,
            self.bench.with_system_prompt(self.prompts.system),
            samples=self.prompts.eval_samples,
            seed=self.identity["seed"],
            kinds=self.prompts.evaluated(),
            threads=self.identity["threads"],
            max_failed=self.max_failed,
            as_trained=False,
        )


def earlier_seconds(out: Path) -> float:
    """The seconds that the run in `out` has taken; after a kill, the sum over its steps."""
    summary = read_json(out / "summary.json") or {}
    stages = [read_json(path) or {} for path in (out / "stages").glob("*/summary.json")]
    steps = sum(row["seconds"] for row in metrics_rows(out)) + sum(
        stage.get("seconds", 0.0) for stage in stages if "shared" not in stage
    )
    return max(summary.get("seconds", 0.0), steps)


def totals(files: Sequence[Path], method: str) -> dict[str, Any]:
    """`failed`, the number of stored rows without the reward they should have, and the `cost` of
    all rows.
    """
    failed = 0
    cost: dict[str, float] = {field.name: 0 for field in fields(Cost)}
    for row in (row for file in files if file.exists() for row in iter_rows(file)):
        paid = row["rewards"]  # none at all where only the form of a sample was asked for
        failed += row["error"] is not None or (
            bool(paid) and paid.get(method, {}).get("value") is None
        )
        for name, value in row["cost"].items():
            cost[name] += value
    return {"failed": failed, "cost": cost}
