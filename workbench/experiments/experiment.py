"""Run an experiment: evaluate, train a method's stages, evaluate again; store all in one folder.

The folder gets its files in this order:

1. before.json: the first evaluation.
2. stages/NAME/: each stage except the last.
3. The files of the last stage, in the run's own folder.
4. summary.json: both evaluations, cost and status.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from workbench.experiments.evaluate import evaluate_policy
from workbench.methods import TRAINED
from workbench.methods.bench import DEFAULT_POLICY, START_FILE, Bench, check_policy
from workbench.methods.method import Method, MethodConfig, Prompts, check_evidence, check_prompts
from workbench.runs.checkpoints import metrics_rows
from workbench.runs.folder import finished, lock, open_run, policy_hash, read_json, versions
from workbench.runs.shared import Shared
from workbench.runs.store import AFTER, BEFORE, EVALUATION
from workbench.training.loading import check_four_bits, import_unsloth_first
from workbench.training.settings import check_one_process
from workbench.training.stage import Job, Stage
from workbench.types import Cost, JsonMapping, JsonObject, WorkbenchError
from workbench.util.config import leaves, put, restore, settings
from workbench.util.failures import TooManyFailures
from workbench.util.jsonl import iter_rows, write_json
from workbench.util.threads import DEFAULT_THREADS, use_threads
from workbench.verdicts.local import is_local, warn_of_training

MAX_FAILED = 0.2  # a larger share of ungraded answers stops an evaluation; a trainer can set it
# keys of config.json that summary.json repeats
SUMMARY = (
    "method config seed threads questions_hash judge bench policy world_hash policy_hash".split()
)


def configured(
    method: Method, bench: Bench, steps: int | None = None, overrides: Sequence[str] = ()
) -> Any:
    """Return the method's config for the bench, changed by `steps` and then by `overrides`.

    Args:
        steps: number of training steps; None for the method's default.
        overrides: changed settings, each as "method.field=value".

    Raises:
        WorkbenchError: the method has no training, or a setting is invalid.
    """
    _check_trains(method)
    config = method.configure(bench.name, overrides)
    if steps is None:
        return config
    return method.configure(bench.name, [*method.with_steps(config, steps), *overrides])


def run_experiment(
    method: Method,
    config: MethodConfig,
    bench: Bench,
    out: Path,
    *,
    seed: int,
    threads: int | None = None,
    shared: Path | None = None,
) -> JsonObject:
    """Evaluate the bench's policy, train it with a method, evaluate it again; return the summary.

    Everything is stored in the folder `out`. If it has an unfinished run, the same call continues
    the run, and the result equals that of an uninterrupted run. If the run is finished, its stored
    summary is returned. The summary's `status` is "done", "interrupted" or "too_many_failures".

    Args:
        threads: number of CPU threads, which affects rounding. None for 2, or for the number with
            which the run began. A run cannot be resumed with another number.
        shared: folder in which several runs share the results of equal training stages, such as a
            cold start; None to share nothing. The judge cost of a shared stage counts in every run.
            Its seconds count only in the run that trained it.

    Raises:
        WorkbenchError: an argument is invalid, or `out` cannot be used. It is raised before any
            work starts.
    """
    check_one_process("a run")  # several processes would write to the same folder
    bench = initial_bench(method, config, bench).with_cache_dir(out)
    stages = stages_of(method, config, bench, seed)
    stored = read_json(out / "config.json") or {}
    identity = identity_of(
        method, config, bench, seed=seed, threads=threads or stored.get("threads"), stored=stored
    )
    # before the folder is written, so that a mistake leaves nothing there
    if not finished(out):
        for stage in (stage for stage in stages if not finished(out / "stages" / stage.name)):
            stage.check(bench.path(bench.policy))
        if bench.named_judge:
            bench.named_judge.try_out()
        if "fact" in method.checks(config) and is_local(bench.checks.verify.get("fact")):
            warn_of_training()
    with lock(out):
        summary = open_run(
            out,
            identity,
            versions(),
            read=reader(method, bench, out),
        )
        if summary is not None:
            print(f"'{out}' is finished: this is its stored summary", file=sys.stderr)
            return summary
        stage_cache = Shared(shared, identity) if shared else None
        run = _Run(config.prompts, bench, out, identity, max_failed(method, config), stage_cache)
        try:
            return run.run(stages, bench.path(bench.policy))
        finally:
            if bench.llm_judge:
                bench.llm_judge.close_cache()


def initial_bench(method: Method, config: MethodConfig, bench: Bench) -> Bench:
    """Return the bench with the method's initial checkpoint as its policy.

    A method that starts from "base" gets the pre-trained model of the bench's policy. If the user
    named another policy, such as a folder, return the bench unchanged.
    """
    start = method.training(config).start
    if start == "base":
        start = bench.pretrained
    elif bench.policy != DEFAULT_POLICY:
        start = None
    return bench.with_policy(start)


def max_failed(method: Method, config: MethodConfig) -> float:
    """Return the largest accepted share of ungraded answers in the evaluations of a run.

    The first of these values that exists is returned:

    1. the trainer's setting `sampling.max_failed`;
    2. the largest value of all other settings named `max_failed` that have an effect in this
       config;
    3. the default 0.2 (`MAX_FAILED`).
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
    config: MethodConfig,
    bench: Bench,
    *,
    seed: int,
    threads: int | None = None,
    stored: JsonMapping = MappingProxyType({}),
) -> JsonObject:
    """Return the identity of a run: the method, config, seed and all else that affects its result.

    Models and files that the run reads are represented by hashes.

    Args:
        threads: number of CPU threads; None for 2.
        stored: the content of the run's config.json, or {}. If a file that the method reads no
            longer exists, its hash is copied from `stored`.

    Raises:
        WorkbenchError: the initial policy does not exist.
    """
    bench = initial_bench(method, config, bench)
    start = bench.path(bench.policy)
    check_policy(bench.policy, start)
    questions_hash = bench.questions_hash((*config.prompts.trained(), *config.prompts.evaluated()))
    return {
        "method": method.name,
        "config": _stored_config(config),
        "seed": seed,
        "bench": bench.name,
        "policy": bench.policy,
        "threads": threads or DEFAULT_THREADS,
        "world_hash": bench.hash,
        "policy_hash": policy_hash(start),
        **({"questions_hash": questions_hash} if questions_hash else {}),
        **bench.judge_identity,
        **{
            name: stored.get(name) if value is None else value
            for name, value in method.input_digests(config, bench).items()
        },
    }


def reader(method: Method, bench: Bench, out: Path) -> Callable[[JsonObject], JsonObject]:
    """Return a function that adds the missing fields to the content of a run's config.json.

    Fields that an earlier version did not store get their defaults. The function raises a
    `WorkbenchError` if the stored config is not a JSON object.
    """
    # 0 is not stored, whatever the method's default
    default = put(method.configure(bench.name), "prompts.retrieved", 0)

    def read(stored: JsonObject) -> JsonObject:
        config = stored.get("config", {})
        if not isinstance(config, Mapping):
            raise WorkbenchError(
                f"'{out / 'config.json'}' is damaged: repair it, or choose another --out folder"
            )
        return {**stored, "config": _stored_config(restore(default, config))}

    return read


def _stored_config(config: MethodConfig) -> JsonObject:
    """Return the config for config.json, without `retrieved` if it is 0.

    Runs that were trained before this setting existed keep their hash.
    """
    values = asdict(config)
    if not values["prompts"]["retrieved"]:
        del values["prompts"]["retrieved"]
    return values


def stages_of(method: Method, config: MethodConfig, bench: Bench, seed: int) -> Sequence[Stage]:
    """Check the seed, settings and questions of a run, and return its training stages in order.

    A stage is one training, such as a cold start. The last stage trains the policy.

    Raises:
        WorkbenchError: the method has no training, or the seed, a setting or the questions are
            invalid.
    """
    _check_trains(method)
    assert method.stages is not None
    if not 0 <= seed < 2**32:
        raise WorkbenchError(f"the seed is {seed}: it must be between 0 and {2**32 - 1}")
    bench = initial_bench(method, config, bench)
    check_prompts(config.prompts, bench)
    check_evidence(method, config, bench)
    check_four_bits(config, method.training(config).idle)
    return method.stages(config, bench)


def _check_trains(method: Method) -> None:
    if method.stages is None:
        trainable = ", ".join(name for name, other in TRAINED.items() if other.stages)
        raise WorkbenchError(
            f"method '{method.name}' computes rewards but has no training: choose one of"
            f" {trainable}"
        )


@dataclass(frozen=True)
class _Run:
    """A run in progress, in the folder `out`."""

    prompts: Prompts
    bench: Bench
    out: Path
    identity: JsonMapping
    max_failed: float
    shared: Shared | None

    def run(self, stages: Sequence[Stage], start: str) -> JsonObject:
        """Evaluate, run the training stages, evaluate again; write and return the summary.

        The summary is also written if the user interrupts the run, or if too many failures stop it.
        `start` is the folder or hub name of the initial policy.
        """
        started, earlier = time.perf_counter(), earlier_seconds(self.out)
        before, after, status = read_json(self.out / "before.json"), None, "interrupted"
        try:
            with use_threads(self.identity["threads"]):
                if not any(stage.plain for stage in stages):
                    # Unsloth patches TRL, so it must be imported before TRL
                    import_unsloth_first()
                if before is None:
                    before = self.evaluate(self.bench.policy, BEFORE)
                    write_json(self.out / "before.json", before)
                if self.train(stages, start):
                    name = f"{self.bench.policy}+{self.identity['method']}"
                    after = {**self.evaluate(str(self.out), AFTER), "policy": name}
                    status = "done"
        except KeyboardInterrupt:
            pass  # the status is "interrupted" already
        except TooManyFailures as error:
            print(f"stopped: {error}", file=sys.stderr)
            status = "too_many_failures"
        summary = {
            **{key: self.identity[key] for key in SUMMARY if key in self.identity},
            "versions": versions(),
            "before": before,
            "after": after,
            "seconds": round(earlier + time.perf_counter() - started, 1),
            **totals(sorted(self.out.rglob("rollouts.jsonl")), self.identity["method"]),
            "status": status,
        }
        write_json(self.out / "summary.json", summary)
        return summary

    def train(self, stages: Sequence[Stage], start: str) -> bool:
        """Run the unfinished stages; return whether all are done."""
        *earlier, last = stages
        folders = {stage.name: self.out / "stages" / stage.name for stage in earlier}
        seed = self.identity["seed"]
        for number, (name, folder) in enumerate(folders.items(), start=1):
            if not self._finished(earlier[:number], Job(start, folder, seed, folders)):
                return False
            policy = folder / "policy"
            if policy.is_dir():  # the stage has trained a policy: the next stage starts from it
                start = str(policy)
                write_json(self.out / START_FILE, {"start": f"stages/{name}/policy"})
        return last.run(Job(start, self.out, seed, folders)) == "done"

    def _finished(self, stages: Sequence[Stage], job: Job) -> bool:
        """Run the last of `stages` unless it is done already. Return whether it is done now.

        If another run has shared the result of an equal stage, this result is copied instead. Two
        stages are equal if their keys and the keys of all earlier stages are equal.
        """
        stage = stages[-1]
        if finished(job.out):
            return True
        if self.shared is None or any(one.cache_key is None for one in stages):
            return self._run(stage, job)
        place = self.shared.folder([(one.name, one.cache_key) for one in stages])
        with self.shared.one_at_a_time(place):
            if self.shared.take(place, job.out):
                print(f"stage '{stage.name}' → {job.out}, from {place}", file=sys.stderr)
                return True
            done = self._run(stage, job)
            if done:
                self.shared.keep(place, job.out)
            return done

    def _run(self, stage: Stage, job: Job) -> bool:
        """Run a stage, and return whether it is done."""
        print(f"stage '{stage.name}' → {job.out}", file=sys.stderr)
        job.out.mkdir(parents=True, exist_ok=True)
        started = time.perf_counter()
        status = stage.run(job)
        seconds = round(time.perf_counter() - started, 1)
        summary = {"stage": stage.name, "seconds": seconds, "status": status}
        write_json(job.out / "summary.json", summary)
        return status == "done"

    def evaluate(self, policy: str, answers: str) -> JsonObject:
        """Evaluate a policy on the run's questions, with the run's prompts.

        `answers` is the name of the file for the graded greedy answers.
        """
        out = self.out / EVALUATION / answers
        out.unlink(missing_ok=True)  # the file of a killed evaluation
        return evaluate_policy(
            policy,
            self.prompts.eval_split,
            self.bench.with_system_prompt(self.prompts.system).with_retrieved(
                self.prompts.retrieved
            ),
            samples=self.prompts.eval_samples,
            seed=self.identity["seed"],
            kinds=self.prompts.evaluated(),
            threads=self.identity["threads"],
            max_failed=self.max_failed,
            as_trained=False,
            out=out,
        )


def earlier_seconds(out: Path) -> float:
    """Return the seconds that the run in `out` has taken so far."""
    # after a kill, the summary is missing or old, so the steps and stages are added up as well
    summary = read_json(out / "summary.json") or {}
    stages = [read_json(path) or {} for path in (out / "stages").glob("*/summary.json")]
    steps = sum(row["seconds"] for row in metrics_rows(out)) + sum(
        stage.get("seconds", 0.0) for stage in stages if "shared" not in stage
    )
    return max(summary.get("seconds", 0.0), steps)


def totals(files: Sequence[Path], method: str) -> JsonObject:
    """Return the failures and the judge cost of stored rollouts, as `{"failed": …, "cost": …}`.

    "failed" is the number of responses with an error or without a reward. "cost" has the sums of
    the judge's calls, cached replies, tokens and seconds.

    Args:
        files: files of stored rollouts.
        method: name of the method that gives the reward.
    """
    failed = 0
    cost: dict[str, float] = {field.name: 0 for field in fields(Cost)}
    for row in (row for file in files if file.exists() for row in iter_rows(file)):
        rewards = row["rewards"]  # empty for samples of which only the form was checked
        missing = bool(rewards) and rewards.get(method, {}).get("value") is None
        failed += row["error"] is not None or missing
        for name, value in row["cost"].items():
            cost[name] += value
    return {"failed": failed, "cost": cost}
