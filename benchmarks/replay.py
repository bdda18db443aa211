"""Measure the seconds to reward stored rollouts again by all methods, with token placement.

    python benchmarks/replay.py --rows 1000 --results benchmarks/results/replay.json

The rows are biographies of the closed world, judged exactly and stored as a run stores them. Some
statements are hedged, vague, or about other people. Only the rows are read; no judge is called.
"""

import argparse
import json
import random
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

from workbench.credit.tokens import words
from workbench.methods import METHODS, checks_needed, method_configs, reward_fns
from workbench.pipeline import grade, rescore
from workbench.runs.store import Store, iter_feedback
from workbench.types import Feedback, Response, Verdict
from workbench.verdicts.checks import world_checks
from workbench.world import load_world
from workbench.world.render import state

SETTINGS = (
    "rlfh.granularity=sentence",
    "rlfh.alpha=2",
    "klcf.b=2",
    "knowrl.refusal=-1",
    "forag.aggregate=min",
)


def rollouts(count: int) -> list[Feedback]:
    """Return judged biographies with a thinking part, of about ten statements each."""
    world, rng = load_world(), random.Random(0)
    checks = world_checks(world)
    complete = checks.recognise or (lambda question: question)
    questions = [complete(question) for question in world.questions("rl", ["biography"])]
    responses = []
    for number in range(count):
        question = questions[number % len(questions)]
        facts = list(world.by[question.title].values()) + rng.sample(world.facts, 4)
        stances = rng.choices(("asserted", "hedged", "vague"), (8, 2, 1), k=len(facts))
        said = [
            state(fact, "en", rng, stance=stance)
            for fact, stance in zip(facts, stances, strict=True)
        ]
        text = f"<think>{said[0]} {said[-1]}</think><answer>{' '.join(said)}</answer>"
        responses.append(
            Response(f"{question.id}/{number}", question, text, offsets=words(text), source="words")
        )
    run = grade(
        [checks.verify[name] for name in checks_needed(method_configs(["rlfh", "klcf"]))],
        {},
        checks.extract,
    )
    # biographies have no gold answer; this verdict on the outcome lets all methods give a reward
    outcome = Verdict("outcome", "answer", "correct", by="benchmark")
    return [
        Feedback(f.response, f.sentences, f.claims, (*f.verdicts, outcome)) for f in run(responses)
    ]


def measure(count: int) -> dict[str, Any]:
    """Measure the seconds to read the rows, and to reward them again with changed settings."""
    with tempfile.TemporaryDirectory() as folder:
        with Store(folder) as store:
            store.append(rollouts(count))
        rewards = reward_fns(method_configs(settings=SETTINGS))
        began = time.perf_counter()
        rows = list(iter_feedback(folder))
        read = time.perf_counter()
        paid = [rescore(row, rewards) for row in rows]
        done = time.perf_counter()
    return {
        "rows": len(rows),
        "tokens_per_row": sum(len(row.response.offsets) for row in rows) / len(rows),
        "claims_per_row": sum(len(row.claims) for row in rows) / len(rows),
        "unscored": sum(reward.value is None for row in paid for reward in row.rewards.values()),
        "read_seconds": round(read - began, 3),
        "pay_seconds": round(done - read, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    found = {
        "date": date.today().isoformat(),
        "methods": len(METHODS),
        "runs": [measure(count) for count in given.rows],
    }
    print(json.dumps(found, indent=1))
    if given.results:
        given.results.parent.mkdir(parents=True, exist_ok=True)
        given.results.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
