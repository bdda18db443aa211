"""`workbench.train` and `workbench.evaluate`: the commands as Python functions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.experiments.evaluate import evaluate_policy
from workbench.experiments.live import Live, start_live
from workbench.experiments.run import Entry, checked, plan_run
from workbench.types import JsonObject


def train(
    method: str,
    out: Path | str,
    *,
    bench: str = "tiny",
    seed: int = 0,
    steps: int | None = None,
    settings: Sequence[str] = (),
    live: bool = False,
    **options: Any,
) -> JsonObject | Live:
    """Evaluate a policy, train it with a method, evaluate it again; return the run's summary.

    If `out` has an unfinished run, the same call continues it. If the run is finished, its stored
    summary is returned.

    Args:
        method: a method or baseline: "rlfh", "truthrl", "forag", "klcf", "knowrl", "dpo", …
        out: the folder of the run.
        bench: "tiny" (the closed world), "small" (real facts) or "paper".
        seed: seed of sampling and of the order of questions.
        steps: number of training steps; None for the method's default on this bench.
        settings: changed settings of the method, each as "method.field=value".
        live: True trains in another process and returns at once. The result is a view with curves
            for a notebook; `view.wait()` returns the summary.
        options: further optional arguments:

            * `questions`: data set or question file, for a bench without questions of its own.
            * `policy`: model folder or hub name to start from instead of the bench's policy.
            * `threads`: number of CPU threads. A run can be resumed only with the same number.
            * `judge`: "local" for the local verifier (`verifier` names its model), or the URL of an
              OpenAI-compatible server (`judge_model` names its model).
            * `judge_cache`: file for the replies of the server.
            * `judge_option`: fields of each request, such as ["reasoning_effort=low"].
            * `judge_tokens`: maximum number of tokens of a reply.
            * `store`: name of a passage index (built by `workbench index build`), in which the
              judge finds evidence for questions without passages.

    Raises:
        WorkbenchError: an argument is invalid, or `out` cannot be used. It is raised before any
            work starts.
    """
    fields = checked({"steps": steps, **options}, "train")
    entry, out = Entry(method, seed, bench, tuple(settings), **fields), Path(out)
    return start_live(entry, out) if live else plan_run(entry, out.parent).train(out)


def evaluate(
    policy: Path | str, split: str = "validation", bench: str = "tiny", **options: Any
) -> JsonObject:
    """Evaluate a policy on the questions of a bench, and return a report.

    The report has rates with 95 % intervals for all questions, by tier (how correctly the training
    data states the answer) and by kind of question.

    Args:
        policy: checkpoint folder, run folder, hub name, or "sft" or "base" for the checkpoints of
            the shipped policy.
        split: name of the split of the questions: "validation", "test", "ood", …
        bench: "tiny" (the closed world), "small" (real facts) or "paper".
        options: further arguments of `workbench.experiments.evaluate.evaluate_policy`, such as
            `samples`, `limit`, `kinds`, `questions`, `judge` and `out`.

    Raises:
        WorkbenchError: the policy, split or bench is unknown, or the split has no question of the
            requested `kinds`.
    """
    return evaluate_policy(str(policy), split, bench, **options)
