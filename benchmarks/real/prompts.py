"""Measure the prompts of a judge on a served GGUF model: form, time, and agreement.

    python -m benchmarks.real.prompts --gguf FILE --answers FILE [FILE …] [--rows 30]

Each file of answers is a `rollouts.jsonl` of an evaluation on the bench `small`; the rows are a
seeded sample, equally many from each file. The prompts of claims, verdicts, informativeness and
outcomes are sent as in `workbench score`, with the best page as evidence. The other prompts are
rendered here: a checklist of the claims that the local verifier calls correct, the reasoning (the
answer as its thinking), marks, outlines of two pages, and preferences between successive answers.

For each task, the results have the number of prompts, the share of first replies in the declared
form, failures by kind after one repetition, and the median seconds. The model's verdicts on claims
are compared with the local verifier's on the same claims, and with the table of real facts where it
decides; outcomes with those of the rules.

Replies are cached in --cache, so an interrupted run resumes and sends no prompt twice. Requests and
seconds of each prompt are appended to a JSONL file of the same name.
"""

import argparse
import hashlib
import itertools
import json
import random
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.human import stats
from benchmarks.real.served import served_judge
from workbench.claims import judged
from workbench.data.real_facts import pages
from workbench.judge import render
from workbench.judge.batch import Arrived, Send
from workbench.retrieval import Search, from_passages
from workbench.runs.store import iter_feedback
from workbench.types import SUPPORTED, Checked, Claims, Failure, Feedback, Prompt, Reply
from workbench.util.jsonl import append_json, iter_rows, write_json
from workbench.verdicts.judged import facts, judged_outcome
from workbench.verdicts.real_facts import table_says

RESULTS = Path(__file__).resolve().parents[1] / "results" / "judge_prompts.json"


def logged(send: Send, log: Path) -> Send:
    """Return `send` with a log: requests, seconds and failure of each prompt that it sends."""

    def send_and_log(prompts: Sequence[Prompt], arrived: Arrived) -> None:
        def log_and_store(prompt: Prompt, reply: Reply) -> Failure | None:
            row = {
                "prompt": digest(prompt),
                "task": prompt.task,
                "calls": reply.cost.calls,
                "seconds": reply.cost.seconds,
                "failure": reply.error.kind if reply.error else None,
            }
            append_json(log, row)
            return arrived(prompt, reply)

        send(prompts, log_and_store)

    return send_and_log


def digest(prompt: Prompt) -> str:
    return hashlib.sha256(prompt.text.encode()).hexdigest()[:16]


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
    """Return how often the model's labels equal those of others.

    Claims are compared as supported or not, with the local verifier and with the table of real
    facts; outcomes with those of the rules. Failed verdicts are left out.

    Args:
        rows: the answers with the labels of the verifier and the rules.
        graded: the same answers with the labels of the model.
    """
    claims: dict[str, list[tuple[bool, bool]]] = {"the local verifier": [], "the table": []}
    outcomes: list[bool] = []
    for row, other in zip(rows, graded, strict=True):
        local = {verdict.target: verdict.label for verdict in row.verdicts if verdict.label}
        model = {verdict.target: verdict.label for verdict in other.verdicts if verdict.label}
        for claim in row.claims:
            target = f"claim:{claim.id}"
            if target in local.keys() & model.keys():
                supported = (local[target] in SUPPORTED, model[target] in SUPPORTED)
                claims["the local verifier"].append(supported)
            true = table_says(claim.text, row.response.question.title)
            if true is not None and target in model:
                claims["the table"].append((true, model[target] in SUPPORTED))
        if "outcome" in local.keys() & model.keys():
            outcomes.append(local["outcome"] == model["outcome"])
    return {
        "claims": {
            name: {
                **stats.wilson(sum(a == b for a, b in some), len(some)),
                "supported": [sum(a for a, _ in some), sum(a and b for a, b in some)],
                "others": [sum(not a for a, _ in some), sum(b and not a for a, b in some)],
            }
            for name, some in claims.items()
        },
        "outcomes": stats.wilson(sum(outcomes), len(outcomes)),
    }


def tasks(log: Path, asked: Set[str]) -> dict[str, Any]:
    """Return form and seconds by task of the prompts whose digests are in `asked`."""
    # a failure is not cached, so a later run sends its prompt again; the last one counts
    rows = {row["prompt"]: row for row in iter_rows(log) if row["prompt"] in asked}.values()
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
    log, asked = given.cache.with_suffix(".jsonl"), set[str]()
    with served_judge(given.gguf, name, given.cache, max_new_tokens=given.tokens) as judge:
        judge.send = logged(judge.send, log)

        def ask(prompts: Sequence[Prompt]) -> list[Reply]:
            asked.update(map(digest, prompts))
            return judge(prompts)

        search = from_passages(pages()).search
        batch = [(row.response, Claims(row.sentences, row.claims)) for row in rows]
        short = [row for row in rows if row.response.question.answers]
        outcomes = judged_outcome(ask)([(row.response, Claims()) for row in short])
        labels = dict(zip([row.response.id for row in short], outcomes, strict=True))
        graded = [
            replace(
                row, verdicts=checked.verdicts + labels.get(row.response.id, Checked()).verdicts
            )
            for row, checked in zip(rows, facts(ask, search, k=1)(batch), strict=True)
        ]
        judged(ask)([row.response for row in rows])
        ask(rendered(rows, search))
    stored = json.loads(given.results.read_text()) if given.results.exists() else {}
    found = {"rows": len(rows), "tasks": tasks(log, asked), "agreement": agreement(rows, graded)}
    write_json(given.results, {**stored, name: found})


if __name__ == "__main__":
    main()
