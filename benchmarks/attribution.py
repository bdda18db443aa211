"""Compare the speed of claim attribution with a plain Python dynamic programme.

    python benchmarks/attribution.py --results benchmarks/results/attribution.json

Responses have 2,000 characters in sentences of 150. A claim is a sentence with some words left out
or changed. Both programmes must find the same last matched characters. The first figure matches
each claim with its own sentence. The second, the worst case, treats the response as one sentence.
"""

import argparse
import json
import platform
import random
import time
from datetime import date
from pathlib import Path

from workbench.credit.attribute import match, strip_end
from workbench.runs.folder import versions

LETTERS = "etaoinshrdlucmfwypvbgkqjxz"


def sentence(rng: random.Random, length: int) -> str:
    words = []
    while sum(map(len, words)) + len(words) < length:
        words.append("".join(rng.choices(LETTERS, weights=range(26, 0, -1), k=rng.randint(2, 9))))
    return " ".join(words)[: length - 1].rstrip() + "."


def claim(rng: random.Random, said: str) -> str:
    kept = [word for word in said.split() if rng.random() > 0.2]
    return " ".join(word[::-1] if rng.random() < 0.1 else word for word in kept)


def plain(wanted: str, text: str) -> int:
    """Return the end of the match, by the textbook table, one row at a time."""
    row = [0] * (len(wanted) + 1)
    longest, end = 0, 0
    for position, letter in enumerate(text):
        before, row = row, [0]
        for column, other in enumerate(wanted):
            row.append(before[column] + 1 if letter == other else max(before[column + 1], row[-1]))
        if row[-1] > longest:
            longest, end = row[-1], position + 1
    return end


def compare(pairs: list[tuple[str, str]], rounds: int) -> dict:
    """Time both on the same pairs, in turns; they must agree."""
    seconds = {"workbench": 0.0, "plain": 0.0}
    for _ in range(rounds):
        began = time.perf_counter()
        ours = [match(wanted, text)[1] for wanted, text in pairs]
        middle = time.perf_counter()
        theirs = [plain(strip_end(wanted), text) for wanted, text in pairs]
        seconds["workbench"] += middle - began
        seconds["plain"] += time.perf_counter() - middle
        assert ours == theirs
    return {
        "claims": len(pairs) * rounds,
        **{name: round(s, 4) for name, s in seconds.items()},
        "ratio": round(seconds["plain"] / seconds["workbench"], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--responses", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    responses = [[sentence(rng, 150) for _ in range(14)] for _ in range(given.responses)]
    by_sentence = [(claim(rng, said), said) for response in responses for said in response]
    whole = [
        (claim(rng, response[rng.randrange(14)]), " ".join(response)[:2000])
        for response in responses
    ]
    results = {
        "date": date.today().isoformat(),
        "seed": given.seed,
        "python": platform.python_version(),
        "versions": versions(),
        "responses": given.responses,
        "rounds": given.rounds,
        "claim_in_its_sentence": compare(by_sentence, given.rounds),
        "claim_in_2000_characters": compare(whole, given.rounds),
    }
    print(json.dumps(results, indent=1))
    if given.results:
        given.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
