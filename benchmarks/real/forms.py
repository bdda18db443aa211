"""Write questions about real facts whose gold answers have the form that a method's training needs.

    python -m benchmarks.real.forms thoughts --out runs/forms/thoughts.jsonl
    python -m benchmarks.real.forms outlines --out runs/forms/outlines.jsonl

An instruction alone does not make small models write these forms. SFT on the gold answers
(`workbench train sft_gold --questions FILE`) teaches them before RL starts. All entities are
training entities of the table of real facts.

- `thoughts` (KnowRL): a question about a city. The answer is "<think>…</think>
  <answer>…</answer>", with the sentences of the city's page as the thinking. A random fifth of
  the answers refuses.
- `outlines` (FoRAG): a question about two countries, with their pages as passages. The answer is a
  plan with two points, and then the first sentences of both pages.
"""

import argparse
import random
from pathlib import Path

from workbench.data.real_facts import pages, questions
from workbench.text import sentences
from workbench.text.outline import Outline, Point, written_outline
from workbench.types import JsonObject
from workbench.util.jsonl import encode

REFUSED = 0.2  # share of the thoughts that end in a refusal
SENTENCES = 3  # of each page in an outlined answer


def thoughts(rng: random.Random) -> list[JsonObject]:
    """Return a question for each training city, with an answer that thinks first."""
    texts = {page.title: page.text for page in pages()}
    rows = []
    for one in questions():
        if one.meta["relation"] == "country" and one.meta["split"] == "rl":
            thought, answer = texts[one.title], one.answers[0]
            if rng.random() < REFUSED:
                thought, answer = f"I do not know much about {one.title}.", "I don't know"
            text = f"<think>{thought}</think>\n<answer>{answer}</answer>"
            rows.append({"id": f"thought-{one.id}", "question": one.text, "answers": [text]})
    return rows


def outlines(rng: random.Random) -> list[JsonObject]:
    """Return questions about two training countries each, with pages and an outlined answer."""
    texts = {page.title: page for page in pages()}
    about = [one for one in questions() if one.kind == "long_form" and one.meta["split"] == "rl"]
    names = list(dict.fromkeys(one.title for one in about))
    rows = []
    for number in range(len(names) * 2):
        pair = rng.sample(names, 2)
        points = tuple(Point(name, source) for source, name in enumerate(pair, start=1))
        parts = [_beginning(texts[name].text) for name in pair]
        plan = Outline("comparison", points, " ".join(parts))
        rows.append(
            {
                "id": f"outline-{number}",
                "question": f"Compare {pair[0]} and {pair[1]}.",
                "answers": [written_outline(plan)],
                "passages": [
                    {"id": texts[name].id, "title": name, "text": texts[name].text} for name in pair
                ],
            }
        )
    return rows


def _beginning(text: str) -> str:
    return text[: sentences(text)[SENTENCES - 1][1]]


FORMS = {"thoughts": thoughts, "outlines": outlines}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("form", choices=FORMS)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    rows = FORMS[chosen.form](random.Random(chosen.seed))
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_bytes(b"".join(map(encode, rows)))
    print(f"wrote {len(rows)} questions to {chosen.out}")


if __name__ == "__main__":
    main()
