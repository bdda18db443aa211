"""Measure how often claims by rules say what their text says, with a label by hand for each claim.

`claim_labels.tsv` has a line for each labelled claim of 373 responses. Its columns:

* `response`: the response's id;
* `claim`: the first 16 hexadecimal digits of the claim's SHA-256;
* `said`: whether the response says it;
* `before`: whether the earlier rules made it;
* `first`: whether the rules made it when the response was first read.

The texts are in the data sets and in `written.jsonl`.

A claim is wrong if a reader of the response would not agree that it is said there: another subject,
object or date; a lost condition, doubt or denial; a cut name; words that say nothing. A claim that
says less than the text, or keeps a pronoun, is right. Only `first` measures the rules on text that
was not used to fix them. The groups:

* *tuned on*, *kept aside*: one reader, the author of the rules. Half of the people and questions
  were held out (`half`). The rules were fixed with 15 responses of the other half. The first 90
  held-out responses were read in six draws of 15, each read and counted before its errors were
  fixed. The rules were then fixed a second time, with the other half and 14 answers of QA-Feedback
  that are in no draw. After that, 94 unread responses were read in three draws, with fixes between
  draws; their `before` means the rules before the second fixes. In the first seven draws, claims of
  old and new rules were mixed, without showing which rules made them. In the last three, claims of
  the new rules were read first.
* *encyclopaedia, tuned on*: 76 paragraphs of Wikipedia, read by two readers who had not seen the
  rules. The rules were rewritten with their labels.
* *encyclopaedia*, *chat*: 44 other paragraphs, and 24 chat-style answers, written for this by an
  author who had not seen the rules. Readers who had not seen the rules either read the claims of
  the new rules and of the previous ones (`before`). For the answers, they did not see which rules
  made a claim. The rules were fixed with these labels afterwards.
* *chat, again*: 30 further answers of this kind, by another author. The rules were measured on them
  after that and not fixed with them. Claims of the previous rules were not read.
"""

import csv
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.human import claims, spans, stats
from benchmarks.human.verdicts import json_lines
from workbench.claims import rules
from workbench.types import Extract, Question, Response

LABELS = Path(__file__).with_name("claim_labels.tsv")
WRITTEN = Path(__file__).with_name("written.jsonl")
LEAST, MOST = 40, 160  # minimum words of an answer or paragraph, maximum of a paragraph
Draw = tuple[int, dict[str, slice]]  # a half, and the slice of each of its `pools`


def _drawn(half: int, *bounds: tuple[str, int, int]) -> Draw:
    return half, {name: slice(start, stop) for name, start, stop in bounds}


GROUPS: dict[str, tuple[Draw, ...]] = {
    "tuned on": (_drawn(0, ("people", 0, 10), ("answers", 0, 5)),),
    "kept aside": (
        _drawn(1, ("people", 0, 10), ("answers", 0, 5)),
        _drawn(1, ("people", 10, 20), ("answers", 5, 10)),
        _drawn(1, ("people", 20, 30), ("answers", 10, 15)),
        _drawn(1, ("people", 30, 34), ("answers", 15, 20), ("long", 0, 6)),
        _drawn(1, ("long", 6, 14), ("chats", 0, 7)),
        _drawn(1, ("long", 14, 22), ("texts", 0, 7)),
        _drawn(1, ("long", 22, 42), ("texts", 7, 22)),
        _drawn(1, ("long", 42, 52), ("texts", 22, 46)),
        _drawn(1, ("short", 0, 25)),
    ),
    "encyclopaedia, tuned on": (_drawn(0, ("pages", 0, 76)),),
    "encyclopaedia": (_drawn(1, ("pages", 0, 44)),),
    "chat": (_drawn(1, ("written", 0, 24)),),
    "chat, again": (_drawn(1, ("again", 0, 30)),),
}
Row = dict[str, str]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def half(group: str) -> int:
    """Return 0 if the rules were written with this person or question, 1 if it is held out."""
    return int(hashlib.sha256(group.encode()).hexdigest(), 16) % 2


def pools(folder: Path, which: int) -> dict[str, list[Response]]:
    """Return the responses of one half by data set, ordered by the digests of their ids.

    QA-Feedback's, FacTool's and the written responses are not split: all count as held out.
    """
    people = [
        one.response
        for one in claims.read(folder)
        if one.facts and half(one.response.question.title) == which
    ]
    written = _written()
    found = {
        "people": people,
        "answers": _answers(folder, which),
        "long": [one.response for one in spans.qa_feedback(folder)],
        "chats": _chats(folder, which),
        "texts": _texts(folder, which),
        "short": _short(folder),
        "pages": _pages(folder, which),
        "written": written[:24],
        "again": written[24:],
    }
    return {name: sorted(pool, key=lambda one: digest(one.id)) for name, pool in found.items()}


def _answers(folder: Path, which: int) -> list[Response]:
    """Return RefChecker's answers to the questions of one half.

    Half 0 has the questions of which at least one answer was read while the rules were fixed.
    """
    rows = {
        f"{file.stem}:{row['id']}": row
        for file in sorted((folder / "refchecker").glob("*.json"))
        for row in json.loads(file.read_text(encoding="utf-8"))
    }
    seen = {row["id"] for name, row in rows.items() if half(name) == 0}
    wanted = [
        (name, row)
        for name, row in rows.items()
        if (row["id"] in seen) == (which == 0) and row["response"]
    ]
    found = [Response(name, Question(str(row["id"]), "?"), row["response"]) for name, row in wanted]
    return [one for one in found if len(one.text.split()) >= LEAST]


def _chats(folder: Path, which: int) -> list[Response]:
    """Return ChatGPT's answers in Factcheck-GPT."""
    rows = json_lines(folder / "factcheck_gpt" / "factcheck-GPT-benchmark.jsonl")
    found = [
        Response(
            f"factcheck-gpt:{digest(row['prompt'])}", Question("", row["prompt"]), row["response"]
        )
        for row in rows
    ]
    return [one for one in found if half(f"fcgpt:{one.question.text[:60]}") == which]


def _short(folder: Path) -> list[Response]:
    """Return ChatGPT's answers to FacTool's short questions, from Factcheck-GPT's files."""
    rows = json_lines(folder / "factcheck_gpt" / "Factbench.factool-qa.jsonl")
    return [
        Response(f"factool:{digest(row['prompt'])}", Question("", row["prompt"]), row["response"])
        for row in rows
    ]


def _texts(folder: Path, which: int) -> list[Response]:
    """Return ChatGPT's answers in HaluEval that are one paragraph of prose."""
    rows = [one.response for one in spans.halueval(folder)]
    prose = [one for one in rows if "\n" not in one.text.strip() and len(one.text.split()) >= LEAST]
    return [one for one in prose if half(f"halueval:{one.id}") == which]


def _pages(folder: Path, which: int) -> list[Response]:
    """Return HotpotQA's paragraphs of Wikipedia."""
    rows = json.loads(
        (folder / "hotpotqa" / "hotpot_dev_distractor_v1.json").read_text(encoding="utf-8")
    )
    texts = {title: "".join(parts).strip() for row in rows for title, parts in row["context"]}
    found = [
        Response(f"hotpot:{title}", Question(title, f"What is {title}?", title=title), text)
        for title, text in texts.items()
    ]
    return [
        one for one in found if half(one.id) == which and LEAST <= len(one.text.split()) <= MOST
    ]


def _written() -> list[Response]:
    rows = json_lines(WRITTEN)
    return [
        Response(row["id"], Question("", row["question"], title=row["title"]), row["response"])
        for row in rows
    ]


def sample(folder: Path, draw: Draw) -> list[Response]:
    which, slices = draw
    found = pools(folder, which)
    return [one for name, some in slices.items() for one in found[name][some]]


def labels(file: Path = LABELS) -> dict[str, list[Row]]:
    """Return the rows of the file by response."""
    found: dict[str, list[Row]] = defaultdict(list)
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            found[row["response"]].append(row)
    return found


def measure(
    folder: Path, seed: int, extractor: Extract | None = None, file: Path = LABELS
) -> dict[str, Any]:
    """Return the share of wrong claims by group, with intervals over responses.

    `before` and `first` depend only on the file. `now` has the labelled ones of today's claims;
    `unread` counts the others.
    """
    known, results = labels(file), {}
    for name, draws in GROUPS.items():
        samples = [sample(folder, draw) for draw in draws]
        responses = [one for some in samples for one in some]
        rows = [known[one.id] for one in responses]
        made = [
            {digest(claim.text) for claim in found.claims}
            for found in (extractor or rules())(responses)
        ]
        now = [
            [row for row in some if row["claim"] in texts]
            for some, texts in zip(rows, made, strict=True)
        ]
        results[name] = {
            "responses": len(responses),
            "before": _wrong(_made(rows, "before"), seed),
            "first": _wrong(_made(rows, "first"), seed),
            "now": {**_wrong(now, seed), "unread": sum(map(len, made)) - sum(map(len, now))},
        }
        results[name]["draws"] = [_draw(some, known, seed) for some in samples]
    return results


def _draw(
    responses: Sequence[Response], known: Mapping[str, Sequence[Row]], seed: int
) -> dict[str, Any]:
    rows = [known[one.id] for one in responses]
    return {name: _wrong(_made(rows, name), seed) for name in ("before", "first")}


def _made(rows: Sequence[Sequence[Row]], when: str) -> list[list[Row]]:
    return [[row for row in some if row[when] == "1"] for some in rows]


def _wrong(rows: Sequence[Sequence[Row]], seed: int) -> dict[str, Any]:
    wrong = np.array([float(sum(row["said"] == "0" for row in some)) for some in rows])
    n = np.array([float(len(some)) for some in rows])
    share: Callable[[np.ndarray], float] = lambda weights: (  # noqa: E731
        float(weights @ wrong / (weights @ n)) if weights @ n else float("nan")
    )
    return {
        "claims": int(n.sum()),
        "wrong": int(wrong.sum()),
        **stats.interval(share, range(len(rows)), seed),
    }
