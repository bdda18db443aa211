"""Measure what three rewards cost on the same claims (KLCF, arXiv 2509.23765, table 5).

    python benchmarks/klcf_cost.py --results benchmarks/results/klcf_cost.json

- FActScore: a call extracts the claims of a response. Each claim takes a search (5 passages of the
  pages that the answer is about) and a call.
- VeriScore: a call per sentence, with its context, extracts the claims. Each claim takes a search
  (10 passages of any page) and a call.
- KLCF: the code of training. A call extracts the claims, a call checks all items of the checklist.
  A truthfulness model in this process scores every claim.

All rewards leave out statements that cannot be verified. The judge is the closed world behind a
server on loopback, which takes 30 ms and .05 ms per token (word) of prompt and reply. A search
takes 20 ms.

The answers are 50 biographies of the tiny base, and 50 long answers with the paper's number of
claims: facts of the world, every fifth of them wrong. Answers are rewarded one after another
(serial), or together with 100 calls in flight. The rewards take turns, after an uncounted round
that caches replies and passages. The times consist of delays, the client, and the model's passes.
An interrupted run resumes with the missing parts.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.scripted_judge import JudgeServer  # noqa: E402
from benchmarks.served import serving  # noqa: E402
from benchmarks.tables import cell  # noqa: E402
from tests.helpers.world_judge import world_script  # noqa: E402
from workbench.judge import endpoint  # noqa: E402
from workbench.methods.bench import Bench, bench  # noqa: E402
from workbench.methods.klcf.config import Prepare  # noqa: E402
from workbench.methods.klcf.method import METHOD, TINY  # noqa: E402
from workbench.methods.klcf.reward import checks as needed  # noqa: E402
from workbench.methods.klcf.reward import reward  # noqa: E402
from workbench.methods.klcf.truth import as_read, scorer_of, truth  # noqa: E402
from workbench.metrics.bootstrap import collect, intervals  # noqa: E402
from workbench.pipeline import ANSWER_SECTIONS, assemble  # noqa: E402
from workbench.policies.generate import generate  # noqa: E402
from workbench.retrieval import Search, build_index, open_index  # noqa: E402
from workbench.runs.folder import policy_hash, read_json, versions  # noqa: E402
from workbench.text.sentences import sentences  # noqa: E402
from workbench.training.reward_model import train_reward_model  # noqa: E402
from workbench.training.scorer import MODEL, Scorer, load_reward_model  # noqa: E402
from workbench.types import (  # noqa: E402
    Checked,
    Claims,
    Cost,
    Extract,
    Feedback,
    Grade,
    Passage,
    Response,
    Verify,
)
from workbench.util.config import scaled  # noqa: E402
from workbench.util.jsonl import write_json  # noqa: E402
from workbench.util.threads import use_threads  # noqa: E402
from workbench.verdicts import facts  # noqa: E402
from workbench.verdicts.checks import judge_checks  # noqa: E402
from workbench.verdicts.world import world_checklist_items, world_facts  # noqa: E402
from workbench.world import load_world  # noqa: E402
from workbench.world.facts import Fact  # noqa: E402
from workbench.world.render import thought  # noqa: E402
from workbench.world.world import World  # noqa: E402

DELAY, PER_TOKEN, SEARCH = 0.03, 0.00005, 0.02  # seconds
IN_FLIGHT = {"serial": 1, "parallel": 100}
FEW, MANY = 5, 10  # passages per search, of FActScore and VeriScore
BEFORE, AFTER = 3, 1  # context sentences in VeriScore's prompt
LONG = 52  # claims per long answer: the number of searches in the paper
# prompts, rounds
PARTS = {
    "own, serial": (50, 1),
    "own, parallel": (50, 5),
    "long, serial": (5, 1),
    "long, parallel": (50, 2),
}
PAID = replace(TINY, l_max=None)  # written answers have no sampled tokens to count
OURS, OTHERS = "KLCF", ("FActScore", "VeriScore")


def remembering(search: Search) -> Search:
    """Return `search` with a cache."""
    known: dict[tuple[str, int, str | None], list[Passage]] = {}

    def run(
        queries: Sequence[str], k: int, titles: Sequence[str | None] | None = None
    ) -> list[list[Passage]]:
        asked = [
            (query, k, title)
            for query, title in zip(queries, titles or [None] * len(queries), strict=True)
        ]
        if new := [one for one in dict.fromkeys(asked) if one not in known]:
            found = search([query for query, _, _ in new], k, titles=[title for _, _, title in new])
            known.update(zip(new, found, strict=True))
        return [known[one] for one in asked]

    return run


@dataclass
class Tally:
    """The resources that a reward has used."""

    seconds: list[float] = field(default_factory=list)
    passes: float = 0.0  # seconds of the truthfulness model
    searches: int = 0
    claims: int = 0
    cost: Cost = field(default_factory=Cost)

    def searching(self, search: Search, in_flight: int) -> Search:
        """Return `search` with its delay, for `in_flight` queries at a time."""

        def run(
            queries: Sequence[str], k: int, titles: Sequence[str | None] | None = None
        ) -> list[list[Passage]]:
            with ThreadPoolExecutor(in_flight) as pool:
                list(pool.map(lambda _: time.sleep(SEARCH), queries))
            self.searches += len(queries)
            return search(queries, k, titles)

        return run

    def passing(self, verify: Verify) -> Verify:
        def run(batch: Sequence[tuple[Response, Claims]]) -> list[Checked]:
            began = time.perf_counter()
            checked = verify(batch)
            self.passes += time.perf_counter() - began
            return checked

        return run

    def timed(self, grade: Grade, responses: Sequence[Response]) -> None:
        began = time.perf_counter()
        rows = grade(responses)
        self.seconds.append(time.perf_counter() - began)
        self.cost = sum((row.cost for row in rows), self.cost)
        self.claims += sum(len(row.claims) for row in rows)

    def per_answer(self, answers: int, in_flight: int) -> dict[str, float]:
        """Return the resources per answer.

        `delays` is the share of the seconds that the delays alone take with `in_flight` calls at a
        time.
        """
        cost, seconds = self.cost, sum(self.seconds)
        delays = (
            cost.calls * DELAY
            + (cost.tokens_in + cost.tokens_out) * PER_TOKEN
            + self.searches * SEARCH
        )
        used = {
            "seconds": seconds,
            "calls": cost.calls,
            "searches": self.searches,
            "tokens_in": cost.tokens_in,
            "tokens_out": cost.tokens_out,
        }
        each = {name: round(value / answers, 4) for name, value in used.items()}
        return {
            **each,
            "delays": round(delays / in_flight / seconds, 4),
            "passes": round(self.passes / seconds, 4),
        }


def by_sentence(extract: Extract) -> Extract:
    """Return an extractor with a call per sentence and its context, joined per response."""

    def windows(response: Response) -> list[Response]:
        texts = [response.text[start:end] for start, end in sentences(response.text)]
        return [
            replace(
                response,
                text=text,
                question=replace(response.question, text=around(response, texts, n)),
            )
            for n, text in enumerate(texts)
        ]

    def around(response: Response, texts: Sequence[str], n: int) -> str:
        before, after = (
            " ".join(texts[max(0, n - BEFORE) : n]),
            " ".join(texts[n + 1 : n + 1 + AFTER]),
        )
        return (
            f"{response.question.text}\nIn its answer this stands before the sentence:"
            f" {before}\nAnd after it: {after}"
        )

    def run(responses: Sequence[Response]) -> list[Claims]:
        parts = [windows(response) for response in responses]
        read = iter(extract([window for part in parts for window in part]))
        return [
            joined(response, [next(read) for _ in part])
            for response, part in zip(responses, parts, strict=True)
        ]

    return run


def joined(response: Response, read: Sequence[Claims]) -> Claims:
    said = [(number, claim) for number, found in enumerate(read) for claim in found.claims]
    claims = tuple(
        replace(claim, id=n, sentence=number, span=None, end=None)
        for n, (number, claim) in enumerate(said)
    )
    error = next((found.error for found in read if found.error), None)
    return Claims(
        sentences(response.text),
        claims,
        error=error,
        cost=sum((found.cost for found in read), Cost()),
    )


def untitled(verify: Verify) -> Verify:
    """Return `verify` with evidence from any page."""
    return lambda batch: verify(
        [(replace(one, question=replace(one.question, title="")), read) for one, read in batch]
    )


def ways(
    url: str, search: Search, scorer: Scorer, in_flight: int
) -> dict[str, tuple[Grade, Tally]]:
    """Return the three rewards.

    FActScore and VeriScore share the reward of KLCF's own baseline, GRPO on FActScore.
    """
    judge = endpoint(url, "world", concurrency=in_flight, retries=0, reasks=0)
    checks, few, many, ours = judge_checks(judge), Tally(), Tally(), Tally()

    def grade(config: Any, extract: Extract, **verify: Verify) -> Grade:
        names = needed(config, "truth" if "truth" in verify else "fact")
        used = replace(checks, extract=extract, verify={**checks.verify, **verify})
        return assemble(used, names, {METHOD.name: reward(config)}, ANSWER_SECTIONS)

    def against(tally: Tally, k: int) -> Verify:
        return facts(judge, tally.searching(search, in_flight), k, informativeness=False)

    by_facts = replace(PAID, w_check=0.0)
    return {
        "FActScore": (grade(by_facts, checks.extract, fact=against(few, FEW)), few),
        "VeriScore": (
            grade(by_facts, by_sentence(checks.extract), fact=untitled(against(many, MANY))),
            many,
        ),
        OURS: (
            grade(
                PAID,
                checks.extract,
                truth=ours.passing(truth(scorer_of(scorer), "model")),
            ),
            ours,
        ),
    }


def own_answers(place: Bench, world: World, count: int) -> list[Response]:
    """Return the tiny base's biographies of people who have a page."""
    pages = {page.title for page in world.pages}
    asked = [
        question for question in place.questions("rl", ["biography"]) if question.title in pages
    ][:count]
    listed = [
        replace(question, checklist=world_checklist_items(world, question)) for question in asked
    ]
    return generate(
        place.load("base"),
        listed,
        max_new_tokens=TINY.grpo.sampling.max_new_tokens,
        temperature=1.0,
        seed=0,
    )


def long_answer(world: World, response: Response, claims: int) -> Response:
    """Return an answer to the same question with `claims` facts about the person and related
    entities.

    Every fifth fact is wrong.
    """
    stated = related(world, response.question.title)[:claims]
    rng = random.Random(response.question.id)
    said = [
        thought(fact if n % 5 else mistaken(world, fact, rng), "en")
        for n, fact in enumerate(stated)
    ]
    asked = replace(
        response.question, title=";".join(dict.fromkeys(fact.subject for fact in stated))
    )
    items = world_checklist_items(world, asked)[: Prepare().items]
    return Response(f"{response.id}/long", replace(asked, checklist=items), " ".join(said))


def related(world: World, person: str) -> list[Fact]:
    """Return facts of the person, then of related entities that have a page, breadth first.

    Entities are related if a fact of one names the other.
    """
    naming: dict[str, list[str]] = {}
    for fact in world.facts:
        naming.setdefault(fact.object, []).append(fact.subject)
    pages, order = {page.title for page in world.pages}, [person]
    for name in order:  # the loop appends to `order`
        near = [*(fact.object for fact in world.by[name].values()), *naming.get(name, [])[:FEW]]
        order += [other for other in dict.fromkeys(near) if other in pages and other not in order]
        if sum(len(world.by[known]) for known in order) >= LONG:
            break
    return [fact for name in order for fact in world.by[name].values()]


def mistaken(world: World, fact: Fact, rng: random.Random) -> Fact:
    others = [
        other
        for other in world.facts
        if other.relation == fact.relation and other.object != fact.object
    ]
    return replace(fact, forms=rng.choice(others).forms)


def truth_model(place: Bench, responses: Sequence[Response], folder: Path) -> Scorer:
    """Train a truthfulness model for one step; its cost does not depend on its weights."""
    rows = [as_read(one.question, one.text[:40], float(n % 2)) for n, one in enumerate(responses)]
    config = scaled(TINY.truth_model, steps=1, epochs=None)
    train_reward_model(config, rows, place.path("base"), folder, seed=0)
    return load_reward_model(folder / MODEL)


def measure(
    graders: Mapping[str, tuple[Grade, Tally]], units: Sequence[Sequence[Response]], rounds: int
) -> None:
    """Reward every unit in all ways in turns, `rounds` times."""
    for _ in range(rounds):
        for unit in units:
            for grade, tally in graders.values():
                tally.timed(grade, unit)


def summary(tallies: Mapping[str, Tally], answers: int, in_flight: int) -> dict[str, Any]:
    """Return the costs of each way, and their ratios to KLCF's with 95 % intervals."""
    ours = tallies[OURS]
    turns = [
        (f"{n:06}", {name: (tallies[name].seconds[n], own) for name in OTHERS})
        for n, own in enumerate(ours.seconds)
    ]
    ratios = intervals(collect(turns, OTHERS), resamples=2000, seed=0)
    bare = sum(ours.seconds) - ours.passes
    return {
        "claims": round(ours.claims / answers, 2),
        "ways": {name: tally.per_answer(answers, in_flight) for name, tally in tallies.items()},
        "ratios": {name: ratios[name] for name in OTHERS},
        "ratios_without_passes": {
            name: round(sum(tallies[name].seconds) / bare, 3) for name in OTHERS
        },
    }


def same_claims(graded: Mapping[str, Sequence[Feedback]]) -> None:
    said = [[[claim.text for claim in row.claims] for row in rows] for rows in graded.values()]
    assert all(claims == said[0] for claims in said), "the ways reward different claims"
    failed = [
        row.rewards[METHOD.name].error
        for rows in graded.values()
        for row in rows
        if row.rewards[METHOD.name].error
    ]
    assert not failed, failed[0]


def agreement(world: World, rows: Sequence[Feedback]) -> float:
    """Return the share of claims whose label by evidence equals the world's own label."""
    exact = world_facts(world)([(row.response, Claims(row.sentences, row.claims)) for row in rows])
    pairs = [
        (row.verdict(one.target, "fact"), one)
        for row, checked in zip(rows, exact, strict=True)
        for one in checked.verdicts
        if one.aspect == "fact"
    ]
    return sum(own is not None and own.label == one.label for own, one in pairs) / len(pairs)


def part(
    name: str,
    answers: Sequence[Response],
    rounds: int,
    make: Callable[[int], dict[str, tuple[Grade, Tally]]],
) -> dict[str, Any]:
    """Measure one part, after a warm-up round whose rows are checked."""
    in_flight = IN_FLIGHT[name.split(", ")[1]]
    graded = {way: grade(answers) for way, (grade, _) in make(max(IN_FLIGHT.values())).items()}
    same_claims(graded)
    graders = make(in_flight)
    measure(graders, [[one] for one in answers] if in_flight == 1 else [answers], rounds)
    stated = summary(
        {way: tally for way, (_, tally) in graders.items()}, len(answers) * rounds, in_flight
    )
    agreed = {way: round(agreement(load_world(), graded[way]), 4) for way in OTHERS}
    return {
        "prompts": len(answers),
        "rounds": rounds,
        **stated,
        "agreement": agreed,
        "load": os.getloadavg()[0],
    }


def measured(url: str, folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Measure all parts; write each missing part when it is done."""
    world, place = load_world(), bench("tiny")
    about = {
        "threads": given.threads,
        "cores": os.cpu_count(),
        "versions": versions(),
        "world_hash": place.hash,
        "policy_hash": policy_hash(place.path("sft")),
        "delays": {"call": DELAY, "token": PER_TOKEN, "search": SEARCH},
        "in_flight": IN_FLIGHT,
    }
    stored = (given.results and read_json(given.results)) or {}
    goes_on = len(stored.get("parts", PARTS)) < len(PARTS) and all(
        stored.get(key) == value for key, value in about.items()
    )
    found = stored if goes_on else {"date": date.today().isoformat(), **about, "parts": {}}
    own = own_answers(place, world, 50)
    answers = {"own": own, "long": [long_answer(world, response, LONG) for response in own]}
    build_index(folder / "index", "world")
    search, scorer = (
        remembering(open_index(folder / "index").search),
        truth_model(place, own, folder / "truth"),
    )
    for name, (prompts, rounds) in PARTS.items():
        if name not in found["parts"]:
            asked = answers[name.split(", ")[0]][:prompts]
            found["parts"][name] = part(
                name, asked, rounds, lambda in_flight: ways(url, search, scorer, in_flight)
            )
            if given.results:
                write_json(given.results, found)
    return found


def show(found: Mapping[str, Any]) -> None:
    for name, part in found["parts"].items():
        print(f"{name}: {part['prompts']} prompts × {part['rounds']}, {part['claims']} claims each")
        for way, stated in part["ways"].items():
            print(f"  {way:10}", "  ".join(f"{key} {value:g}" for key, value in stated.items()))
        for way, ratio in part["ratios"].items():
            bare = part["ratios_without_passes"][way]
            print(f"  {way} / {OURS}: {cell(ratio)}, without passes {bare:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        help="threads of the model's passes; the server needs another core",
    )
    parser.add_argument("--results", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        return JudgeServer(world_script(load_world()), delay=DELAY, per_token=PER_TOKEN).serve()
    with (
        use_threads(given.threads),
        serving(__file__) as url,
        tempfile.TemporaryDirectory() as folder,
    ):
        show(measured(url, Path(folder), given))


if __name__ == "__main__":
    main()
