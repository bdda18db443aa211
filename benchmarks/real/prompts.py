"""Measure the prompts of a judge on a served GGUF model: form, time, and agreement.

    python -m benchmarks.real.prompts --gguf FILE --answers FILE [FILE …] [--rows 30]

Each file of answers is a `rollouts.jsonl` of an evaluation on the bench `small`; the rows are a
seeded sample, equally many from each file. The prompts of claims, verdicts, informativeness and
outcomes are sent as in `workbench score`, with the best page as evidence. The other prompts are
rendered here: a checklist of the claims that the local verifier calls correct, the reasoning (the
answer as its thinking), marks, outlines of two pages, and preferences between successive answers.

For each prompt, the results have the number of prompts, the share of first replies in the declared
form, failures by kind after one repetition, and the median seconds. The model's verdicts on claims
are compared with the table of real facts, where it decides, and with the local verifier's verdicts
on the same claims; outcomes with those of the rules.

Replies are cached in --cache, so an interrupted run resumes and sends no prompt twice. Repetitions
and seconds are those of the run that sent the prompt, stored beside the cache.
"""

import argparse
import hashlib
import itertools
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.human import stats
from workbench.claims import judged
from workbench.data.real_facts import pages
from workbench.judge import endpoint, render
from workbench.judge.batch import BatchJudge
from workbench.policies.serve import serve
from workbench.retrieval import Search, from_passages
from workbench.runs.store import iter_feedback
from workbench.types import SUPPORTED, Checked, Claims, Feedback, Prompt, Reply
from workbench.util.jsonl import append_json, iter_rows, write_json
from workbench.verdicts.judged import facts, judged_outcome
from workbench.verdicts.real_facts import table_says

RESULTS = Path(__file__).resolve().parents[1] / "results" / "judge_prompts.json"


class Logged:
    """A judge that appends task, requests, seconds and failure of each prompt to a file."""

    def __init__(self, judge: BatchJudge, log: Path) -> None:
        self.judge, self.log = judge, log

    def __call__(self, prompts: Sequence[Prompt]) -> list[Reply]:
        replies = self.judge(prompts)
        for prompt, reply in zip(prompts, replies, strict=True):
            if reply.cost.calls:  # sent in this run
                row = {
                    "prompt": hashlib.sha256(prompt.text.encode()).hexdigest()[:16],
                    "task": prompt.task,
                    "calls": reply.cost.calls,
                    "seconds": reply.cost.seconds,
                    "failure": reply.error.kind if reply.error else None,
                }
                append_json(self.log, row)
        return replies


def sample(files: Sequence[Path], size: int, seed: int) -> list[Feedback]:
    """Return a seeded sample of answers, equally many from each file.

    A larger sample contains the smaller ones, whose replies are cached.
    """
    rows = [list(iter_feedback(path)) for path in files]
    drawn = [random.Random(seed).sample(some, len(some)) for some in rows]
    return [row for some in drawn for row in some[: size // len(rows)]]


def rendered(rows: Sequence[Feedback], search: Search) -> list[Prompt]:
    """Return the prompts that `workbench score` does not send by default."""
    prompts = []
    for row in rows:
        question, text = row.response.question, row.response.text
        correct = {v.target for v in row.verdicts if v.label in SUPPORTED}
        items = [claim.text for claim in row.claims if f"claim:{claim.id}" in correct]
        if items:
            prompts.append(
                render("checklist", question=question.text, response=text, items=items[:8])
            )
        gold = list(question.answers) or None
        prompts.append(render("reasoning", question=question.text, answers=gold, response=text))
        for task in ("coherence", "helpfulness"):
            prompts.append(render(task, question=question.text, response=text))
        found = search([question.text], 2)[0]
        prompts.append(render("outline", question=question.text, passages=list(found)))
    for one, other in itertools.pairwise(rows):
        texts = [one.response.text, other.response.text]
        prompts.append(render("prefer", question=one.response.question.text, responses=texts))
    return prompts


def agreement(rows: Sequence[Feedback], graded: Sequence[Feedback]) -> dict[str, Any]:
    """Return shares of equal verdicts: with the table, the local verifier and the rules.

    Claims are those of the local rules, on which the model and the verifier both decide.
    """
    pairs: dict[str, list[tuple[bool, bool]]] = {}
    for row, other in zip(rows, graded, strict=True):
        local = {verdict.target: verdict.label for verdict in row.verdicts}
        model = {verdict.target: verdict.label for verdict in other.verdicts}
        for claim in row.claims:
            first, second = (labels.get(f"claim:{claim.id}") for labels in (local, model))
            true = table_says(claim.text, row.response.question.title)
            for name, reference, label in (
                ("the local verifier", first and first in SUPPORTED, second),
                ("the table", true, second),
                ("the table; local verifier", true, first),
            ):
                if reference is not None and label is not None:
                    pairs.setdefault(name, []).append((bool(reference), label in SUPPORTED))
        if (rule := local.get("outcome")) and (label := model.get("outcome")):
            pairs.setdefault("the rules, outcomes", []).append((rule == label, True))
    return {
        name: {
            **stats.wilson(sum(a == b for a, b in some), len(some)),
            "called_correct": [sum(b for a, b in some if a is truth) for truth in (True, False)],
            "of": [sum(a is truth for a, _ in some) for truth in (True, False)],
        }
        for name, some in pairs.items()
    }


def tasks(log: Path) -> dict[str, Any]:
    """Return form and seconds by task, from the log of all runs."""
    # a failure is not cached, so a later run sends its prompt again
    rows = list({row["prompt"]: row for row in iter_rows(log)}.values())
    found: dict[str, Any] = {}
    for task in sorted({row["task"] for row in rows}):
        some = [row for row in rows if row["task"] == task]
        at_once = sum(row["calls"] == 1 and row["failure"] is None for row in some)
        found[task] = {
            "in_form_at_once": stats.wilson(at_once, len(some)),
            "asked_again": sum(row["calls"] > 1 for row in some),
            "failures": Counter(row["failure"] for row in some if row["failure"]),
            "seconds": round(median(row["seconds"] for row in some), 2),
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the prompts of a judge on a GGUF model.")
    parser.add_argument("--gguf", type=Path, required=True)
    parser.add_argument("--answers", type=Path, nargs="+", required=True)
    parser.add_argument("--rows", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=768, help="maximum tokens of a reply")
    parser.add_argument("--cache", type=Path, default=Path("runs/judge_prompts.sqlite"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    name, rows = given.gguf.stem, sample(given.answers, given.rows, given.seed)
    given.cache.parent.mkdir(parents=True, exist_ok=True)
    log = given.cache.with_suffix(".jsonl")
    server = serve(str(given.gguf), port=0, name=name)
    try:
        judge = Logged(
            endpoint(
                server.url,
                name,
                extra={"response_format": "schema"},
                max_new_tokens=given.tokens,
                cache=given.cache,
                cache_address=name,
                concurrency=1,
                timeout=1800,
            ),
            log,
        )
        search = from_passages(pages()).search
        batch = [(row.response, Claims(row.sentences, row.claims)) for row in rows]
        short = [row for row in rows if row.response.question.answers]
        outcomes = judged_outcome(judge)([(row.response, Claims()) for row in short])
        labels = dict(zip([row.response.id for row in short], outcomes, strict=True))
        graded = [
            replace(
                row, verdicts=checked.verdicts + labels.get(row.response.id, Checked()).verdicts
            )
            for row, checked in zip(rows, facts(judge, search, k=1)(batch), strict=True)
        ]
        judged(judge)([row.response for row in rows])
        judge(rendered(rows, search))
    finally:
        server.stop()
    stored = json.loads(given.results.read_text()) if given.results.exists() else {}
    found = {"rows": len(rows), "tasks": tasks(log), "agreement": agreement(rows, graded)}
    write_json(given.results, {**stored, name: found})


if __name__ == "__main__":
    main()
