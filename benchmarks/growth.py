"""Measure how the cost of a training step grows with prompts, group, length and claims.

    python benchmarks/growth.py --results benchmarks/results/growth.json

Each quantity varies alone, around a base point, on the tiny bench. Judged responses are written,
not sampled: facts of the world, one per sentence, about half of them with another value, and then
questions, which claim nothing, up to the length.

The judge's costs are those of RLFH's grading by a scripted judge on loopback: requests at the
server, and tokens of prompts and replies (MiniLM's tokenizer). Seconds are medians over rounds. A
round measures all points once, in a new order. The parts are sampling without an end token, claims
by rules, the local verifier, and PPO's update. A slope is that of log cost over log value: 1 is
linear.

`sampled` has the requests for the base's own responses, where a group repeats claims and equal
prompts are sent once.
"""

import argparse
import json
import math
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.klcf_cost import mistaken, related  # noqa: E402
from benchmarks.scripted_judge import JudgeServer, by_checksum  # noqa: E402
from benchmarks.tables import markdown  # noqa: E402
from workbench.claims import rules  # noqa: E402
from workbench.judge import Element, endpoint  # noqa: E402
from workbench.methods import METHODS  # noqa: E402
from workbench.methods.bench import bench  # noqa: E402
from workbench.pipeline import grade  # noqa: E402
from workbench.policies.generate import Policy, Sampling, generate, prompt_ids  # noqa: E402
from workbench.runs.folder import versions  # noqa: E402
from workbench.text.sentences import sentences  # noqa: E402
from workbench.training.actor import Actor, State  # noqa: E402
from workbench.training.loading import load_trainee  # noqa: E402
from workbench.training.ppo import PPO, prepare, update  # noqa: E402
from workbench.training.sampling import as_response  # noqa: E402
from workbench.types import Passage, Prompt, Question, Reply, Response, Reward  # noqa: E402
from workbench.util.config import scaled  # noqa: E402
from workbench.util.jsonl import write_json  # noqa: E402
from workbench.util.minilm import packaged_folder  # noqa: E402
from workbench.util.threads import use_threads  # noqa: E402
from workbench.verdicts.checks import judge_checks  # noqa: E402
from workbench.verdicts.local import local_facts  # noqa: E402
from workbench.verifier import load_verifier  # noqa: E402
from workbench.world import load_world  # noqa: E402
from workbench.world.facts import Fact  # noqa: E402
from workbench.world.render import thought  # noqa: E402

BASE = {"prompts": 4, "group": 2, "length": 128, "claims": 4}
AXES = {
    "prompts": (1, 2, 4, 8),
    "group": (1, 2, 4, 8),
    "length": (64, 128, 256, 384),
    "claims": (1, 2, 4, 8),
}
COUNTS, SECONDS = (
    ("requests", "tokens_in", "tokens_out"),
    ("sampling", "extraction", "verification", "learning"),
)
GROUPS, PEOPLE = (1, 2, 4, 8, 16), 8  # for the base's own biographies
NEAR = 0.1  # maximum distance from 1 of a linear slope
LEARNT = scaled(
    PPO(),
    steps=1000,
    micro_batch=None,
    gradient_checkpointing=False,
    learning_rate=1e-12,
    critic_learning_rate=1e-12,
)
Point = Mapping[str, int]


def points() -> Iterator[tuple[str, int, Point]]:
    """Yield every axis, value and point; the base point is on each axis."""
    for axis, values in AXES.items():
        for value in values:
            yield axis, value, {**BASE, axis: value}


def reply(task: str, elements: Sequence[Element]) -> str:
    """Return the scripted judge's reply; each sentence that states something is a claim."""
    if task != "extract":
        return by_checksum(task, elements)
    text = next(element.text for element in elements if element.tag == "response")
    said = [text[start:end] for start, end in sentences(text) if text[start:end].endswith(".")]
    return json.dumps(
        {"sentences": [{"text": sentence, "claims": [sentence]} for sentence in said]}
    )


@dataclass
class Written:
    """The people to write about, and the function that counts the tokens of a text."""

    people: list[Question]
    count: Callable[[str], int]
    seed: int

    def responses(self, point: Point, turn: int = 0) -> list[Response]:
        """Return the responses of a step; they differ between turns."""
        asked = self.people[: point["prompts"]]
        return [
            self._one(question, point, n, turn) for question in asked for n in range(point["group"])
        ]

    def _one(self, question: Question, point: Point, number: int, turn: int) -> Response:
        world, rng = (
            load_world(),
            random.Random(f"{self.seed}-{turn}-{question.id}-{number}-{sorted(point.items())}"),
        )
        facts = rng.sample(about(question.title), point["claims"])
        said = [
            thought(mistaken(world, fact, rng) if rng.random() < 0.5 else fact, "en")
            for fact in facts
        ]
        while self.count(" ".join(said)) < point["length"]:
            said.append(
                f"And what about {rng.choice(facts).subject} after all these {rng.randrange(10**4)}"
                " years?"
            )
        return Response(f"{question.id}/{number}", question, " ".join(said))


@cache
def about(person: str) -> list[Fact]:
    return related(load_world(), person)


def bare(question: Question) -> Question:
    """Return the question as the policy gets it, without the judge's passages."""
    return replace(question, passages=())


def people() -> list[Question]:
    """Return biography questions about people who have a page, with that page."""
    pages = {page.title: Passage(page.id, page.title, page.text) for page in load_world().pages}
    asked = [
        question
        for question in bench("tiny").questions("rl", ["biography"])
        if question.title in pages
    ]
    return [replace(question, passages=(pages[question.title],)) for question in asked]


class Counting:
    """A judge that stores its distinct prompts with their replies."""

    def __init__(self, url: str, count: Callable[[str], int]) -> None:
        self.judge, self.count, self.seen = endpoint(url, "scripted"), count, dict[Prompt, str]()

    def __call__(self, prompts: Sequence[Prompt]) -> list[Reply]:
        replies = self.judge(prompts)
        self.seen.update(
            {prompt: one.text or "" for prompt, one in zip(prompts, replies, strict=True)}
        )
        return replies

    def totals(self) -> dict[str, int]:
        asked, said = (
            sum(map(self.count, texts))
            for texts in ([one.text for one in self.seen], self.seen.values())
        )
        return {"requests": len(self.seen), "tokens_in": asked, "tokens_out": said}


def judged(
    responses: Sequence[Response], count: Callable[[str], int]
) -> tuple[dict[str, int], float, dict[str, float]]:
    """Return the costs of RLFH's grading, claims per response, and characters per token by task."""
    with JudgeServer(reply) as server:
        judge = Counting(server.url, count)
        rows = METHODS["rlfh"].grader(METHODS["rlfh"].config(), judge_checks(judge))(responses)
    assert not any(row.error for row in rows) and server.requests == len(judge.seen), (
        server.requests
    )
    tasks = sorted({prompt.task for prompt in judge.seen})
    by_task = {
        task: [prompt.text for prompt in judge.seen if prompt.task == task] for task in tasks
    }
    return (
        judge.totals(),
        fmean(len(row.claims) for row in rows),
        {
            task: round(sum(map(len, texts)) / sum(map(count, texts)), 2)
            for task, texts in by_task.items()
        },
    )


def parts(
    written: Written, policy: Policy, state: State
) -> Callable[[Point, int], dict[str, float]]:
    """Return a function that measures the seconds of each part at one point."""
    extract, verify = rules(), local_facts(load_verifier())
    pay = grade([], {"flat": lambda row: Reward(float(len(row.response.text) % 3))})

    def measure(point: Point, turn: int) -> dict[str, float]:
        import torch

        responses, asked = (
            written.responses(point, turn),
            map(bare, written.people[: point["prompts"]]),
        )
        jobs = [question for question in asked for _ in range(point["group"])]
        marks = [time.perf_counter()]
        completions = policy.complete(
            prompt_ids(policy.tokenizer, jobs), (), Sampling(point["length"], seed=turn)
        )
        marks.append(time.perf_counter())
        read = extract(responses)
        marks.append(time.perf_counter())
        verify(list(zip(responses, read, strict=True)))
        marks.append(time.perf_counter())
        rows = pay(
            [
                as_response(policy.tokenizer, one, ids, ())
                for one, (ids, _) in zip(jobs, completions, strict=True)
            ]
        )
        began = time.perf_counter()
        batch = prepare(state.actor, rows, "flat", LEARNT)
        state.set_rates(1)
        update(state, batch, torch.arange(len(rows)), torch.ones_like(batch.mask_BT))
        took = [after - before for before, after in pairwise(marks)]
        return dict(zip(SECONDS, [*took, time.perf_counter() - began], strict=True))

    return measure


def timed(
    measure: Callable[[Point, int], dict[str, float]], rounds: int, seed: int
) -> Iterator[dict[str, list[dict[str, float]]]]:
    """Yield the seconds of every point so far, after each round but the first, which is not
    counted.
    """
    distinct = {json.dumps(point): point for _, _, point in points()}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in distinct}
    for turn in range(rounds + 1):
        names = list(distinct)
        random.Random(f"{seed}-{turn}").shuffle(names)
        for name in names:
            took = measure(distinct[name], turn)
            if turn:
                found[name].append(took)
        if turn:
            yield found


def slope(values: Sequence[float], costs: Sequence[float]) -> float:
    """Return the least-squares slope of log cost over log value.

    It is 1 for a cost proportional to the value, 0 for a constant cost.
    """
    x, y = [math.log(value) for value in values], [math.log(cost) for cost in costs]
    around = [one - fmean(x) for one in x]
    return sum(a * b for a, b in zip(around, y, strict=True)) / sum(a * a for a in around)


def fitted(values: Sequence[int], rounds: Sequence[Sequence[float]]) -> dict[str, float]:
    """Return the slope of the medians over rounds, and the range of single rounds' slopes.

    A round has one cost per value.
    """
    each = [slope(values, costs) for costs in rounds]
    middle = slope(values, [median(costs) for costs in zip(*rounds, strict=True)])
    return {"slope": round(middle, 3), "low": round(min(each), 3), "high": round(max(each), 3)}


def along(
    axis: str, counts: Mapping[str, Any], seconds: Mapping[str, list[dict[str, float]]]
) -> dict[str, Any]:
    """Return the counts, seconds and slopes along an axis."""
    values = AXES[axis]
    names = [json.dumps({**BASE, axis: value}) for value in values]
    counted = {name: [counts[one][name] for one in names] for name in COUNTS}
    took = {
        name: [
            [seconds[one][turn][name] for one in names] for turn in range(len(seconds[names[0]]))
        ]
        for name in SECONDS
    }
    return {
        "values": values,
        "claims": [counts[one]["claims"] for one in names],
        **counted,
        "seconds": {
            name: [round(median(costs), 4) for costs in zip(*turns, strict=True)]
            for name, turns in took.items()
        },
        "slopes": {
            **{name: fitted(values, [costs]) for name, costs in counted.items()},
            **{name: fitted(values, turns) for name, turns in took.items()},
        },
    }


def own_groups(
    policy: Policy, asked: Sequence[Question], count: Callable[[str], int], seed: int
) -> dict[str, Any]:
    """Return the requests for the base's own biographies, by group size."""
    most = max(GROUPS)
    sampled = generate(
        policy, list(map(bare, asked)), max_new_tokens=96, samples=most, temperature=1.0, seed=seed
    )
    groups = [
        [replace(one, question=question) for one in sampled[n * most : (n + 1) * most]]
        for n, question in enumerate(asked)
    ]
    totals = [
        judged([one for group in groups for one in group[:size]], count)[0]["requests"]
        for size in GROUPS
    ]
    return {
        "people": len(asked),
        "values": GROUPS,
        "requests": totals,
        "slopes": {"requests": fitted(GROUPS, [totals])},
    }


def measured(rounds: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the results so far, after each round."""
    from transformers import AutoTokenizer

    tiny, pieces = bench("tiny"), AutoTokenizer.from_pretrained(packaged_folder())
    count = lambda text: len(pieces.encode(text, add_special_tokens=False))  # noqa: E731
    policy, trainee = (
        tiny.load("base"),
        load_trainee(tiny.path("base"), lora_r=16, lora_alpha=32, seed=seed, unsloth=False),
    )
    written = Written(people(), lambda text: len(policy.tokenizer.encode(text)), seed)
    counts, characters = dict[str, Any](), dict[str, float]()
    for name, point in {json.dumps(point): point for _, _, point in points()}.items():
        asked, claims, characters = judged(written.responses(point), count)
        counts[name] = {**asked, "claims": claims}
    own = own_groups(policy, written.people[:PEOPLE], count, seed)
    totals: dict[str, Any] = {"base": BASE, "sampled": own, "characters_per_token": characters}
    for number, seconds in enumerate(
        timed(
            parts(written, policy, State(Actor(trainee), LEARNT, LEARNT.steps, seed)), rounds, seed
        ),
        1,
    ):
        yield {
            "rounds": number,
            **totals,
            "axes": {axis: along(axis, counts, seconds) for axis in AXES},
        }


TITLES = {
    "requests": "judge: requests",
    "tokens_in": "judge: tokens in",
    "tokens_out": "judge: tokens out",
    "sampling": "sampling, s",
    "extraction": "claims by rules, s",
    "verification": "local verifier, s",
    "learning": "learning, s",
}


def table(found: Mapping[str, Any]) -> str:
    """Return a table of slopes by quantity and axis."""
    head = [
        "slope of",
        *(f"{axis} {one['values'][0]}–{one['values'][-1]}" for axis, one in found["axes"].items()),
    ]
    rows = [
        [title, *(cell(axis["slopes"][name]) for axis in found["axes"].values())]
        for name, title in TITLES.items()
    ]
    base = ", ".join(f"{name} {value}" for name, value in found["base"].items())
    own = found["sampled"]
    about = (
        f"{found['date']}, base point {base}; {found['rounds']} rounds, {found['threads']} thread"
        f" of {found['cores']} cores, with other work on the\nmachine (load"
        f" {found['load'][0]:.1f} to {found['load'][1]:.1f}). Brackets: smallest and"
        " largest value of a round. Bold: differs from 1 by more than .1 in every round."
    )
    pieces = ", ".join(f"{value} ({task})" for task, value in found["characters_per_token"].items())
    again = (
        f"For the base's own samples about {own['people']} people, the slope of requests in the"
        f" group is {own['slopes']['requests']['slope']:.2f}, because responses\nof a group repeat"
        " claims and equal prompts are sent once. Characters per token of the prompts (MiniLM's"
        f" tokenizer): {pieces}."
    )
    return "\n\n".join([about, markdown(head, rows), again])


def cell(one: Mapping[str, float]) -> str:
    """Return a slope with its range over rounds.

    It is bold if it differs from 1 by more than `NEAR`, and all rounds are on the same side of 1.
    """
    linear = abs(one["slope"] - 1) <= NEAR or one["low"] <= 1 <= one["high"]
    value = f"{one['slope']:.2f}" if linear else f"**{one['slope']:.2f}**"
    return value if one["low"] == one["high"] else f"{value} [{one['low']:.2f}, {one['high']:.2f}]"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    about = {
        "date": date.today().isoformat(),
        "cores": os.cpu_count(),
        "threads": given.threads,
        "seed": given.seed,
        "beside": "other work on the same cores",
        "versions": versions(),
    }
    before = os.getloadavg()[0]
    with use_threads(given.threads):
        for found in measured(given.rounds, given.seed):
            result = {**about, "load": [before, os.getloadavg()[0]], **found}
            print(f"after {found['rounds']} rounds\n{table(result)}", flush=True)
            if given.results:  # a run that is broken off leaves the rounds that are whole
                write_json(given.results, result)


if __name__ == "__main__":
    main()
