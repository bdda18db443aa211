"""Measure recall and precision of claim extraction on biographies of the tiny policy.

    python benchmarks/extraction.py --results benchmarks/results/extraction.json

The 500 responses are one greedy and one sampled biography for each of 250 validation and test
people. The world's parser reads their facts (subject, relation, object) exactly. A fact is found if
a claim, read without context, states it. A claim is right if it states facts of its response and no
others. "was born in 1921" is read as "was born in the year 1921". `atomic` is the share of claims
that are right and state one fact. Claims of sentences that the parser cannot read are counted
separately (`unreadable`). 95 % intervals: bootstrap over people.

Extractors: `world` is exact, `rules` needs no model, `sentences` uses each sentence as a claim.
"""

import argparse
import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from workbench import claims as extract
from workbench.methods.bench import bench
from workbench.policies.generate import generate
from workbench.runs.folder import policy_hash, versions
from workbench.text import sentences
from workbench.types import Claim, Claims, Response
from workbench.util.jsonl import write_json
from workbench.world import load_world
from workbench.world.parser import Parse, Parser

PEOPLE = 250
LONG = 112  # maximum new tokens of a biography


def biographies(seed: int, cache: Path) -> list[Response]:
    """Return a greedy and a sampled biography of each person, cached by policy and seed."""
    world, tiny = load_world(), bench("tiny")
    asked = [
        question
        for split in ("validation", "test")
        for question in world.questions(split, ["biography"])
    ]
    asked = random.Random(seed).sample(asked, PEOPLE)
    file = cache / f"{policy_hash(tiny.path(tiny.policy))}-{tiny.hash}-{seed}.json"
    if not file.is_file():
        policy = tiny.load(tiny.policy)
        drawn = generate(policy, asked, max_new_tokens=LONG, seed=seed)
        best = generate(policy, asked, max_new_tokens=LONG, greedy=True)
        cache.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps([response.text for response in [*best, *drawn]]))
    texts = json.loads(file.read_text())
    return [
        Response(f"{n}", question, text)
        for n, (question, text) in enumerate(zip(asked * 2, texts, strict=True))
    ]


def by_sentence(responses: Sequence[Response]) -> list[Claims]:
    """Return each sentence as a claim: the baseline for extraction."""
    found = []
    for response in responses:
        spans = sentences(response.text)
        said = [(response.text[slice(*span)], span) for span in spans]
        claims = [
            Claim(n, text, "body", n, span, span[1])
            for n, (text, span) in enumerate(said)
            if extract.makes_claims(text)
        ]
        found.append(Claims(spans, tuple(claims)))
    return found


def facts(parse: Parse) -> list[tuple]:
    return [(claim.subject, claim.relation, claim.object) for claim in parse.claims]


def counts(response: Response, found: Claims, parser: Parser) -> Counter[str]:
    """Return the counts that one response adds to the sums."""
    title = response.question.title
    whole = parser.parse(response.text, title)
    stated = set(facts(whole))
    total = Counter(facts=len(stated))
    said: set[tuple] = set()
    for claim in found.claims:
        begin, end = found.sentences[claim.sentence or 0]
        if any(broken.span[0] < end and begin < broken.span[1] for broken in whole.unparsed):
            total["unreadable"] += 1
            continue
        read = parser.parse(
            re.sub(r"\bwas born in (?=\d{4}\b)", "was born in the year ", claim.text)
        )
        given = set(facts(read))
        right = bool(given) and given <= stated and not read.unparsed
        total += Counter(claims=1, right=right, atomic=right and len(given) == 1)
        said |= given & stated if right else set()
    total["found"] = len(said)
    return total


def rates(rows: Sequence[tuple[str, Counter[str]]], seed: int, resamples: int = 2000) -> dict:
    """Return recall, precision and the share of atomic claims, with intervals over people."""
    import numpy as np

    people = sorted({person for person, _ in rows})
    sums = np.zeros((len(people), 5))
    for person, count in rows:
        sums[people.index(person)] += [
            count[name] for name in ("found", "facts", "right", "claims", "atomic")
        ]
    weights = np.random.default_rng(seed).multinomial(
        len(people), [1 / len(people)] * len(people), size=resamples
    )
    total, drawn = sums.sum(axis=0), weights @ sums
    output: dict = {
        "facts": int(total[1]),
        "claims": int(total[3]),
        "unreadable": sum(count["unreadable"] for _, count in rows),
    }
    for name, top, bottom in (("recall", 0, 1), ("precision", 2, 3), ("atomic", 4, 3)):
        low, high = np.percentile(drawn[:, top] / drawn[:, bottom], [2.5, 97.5])
        output[name] = {
            "value": float(total[top] / total[bottom]),
            "low": float(low),
            "high": float(high),
        }
    return output


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=Path("runs/extraction"))
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()

    world, responses = load_world(), biographies(given.seed, given.cache)
    reader = Parser(world)
    extractors: dict[str, Callable] = {
        "world": extract.world(world),
        "rules": extract.rules(),
        "sentences": by_sentence,
    }
    results: dict = {
        "date": date.today().isoformat(),
        "n": len(responses),
        "people": PEOPLE,
        "seed": given.seed,
        "world_hash": world.hash,
        "policy_hash": policy_hash(bench("tiny").path("sft")),
        "versions": versions(),
        "extractors": {},
    }
    for name, extractor in extractors.items():
        begun = time.perf_counter()
        found = extractor(responses)
        seconds = time.perf_counter() - begun
        rows = [
            (response.question.title, counts(response, one, reader))
            for response, one in zip(responses, found, strict=True)
        ]
        results["extractors"][name] = {**rates(rows, given.seed), "seconds": round(seconds, 2)}
        print(name, json.dumps(results["extractors"][name]))
    if given.results:
        write_json(given.results, results)


if __name__ == "__main__":
    main()
