"""Rows to score, and a judge whose replies are functions of the prompt."""

import json
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from tests.helpers import examples
from workbench.judge import Element
from workbench.judge.wire import MARKED, MARKS
from workbench.scoring import Options
from workbench.types import JsonMapping, JsonObject
from workbench.world import load_world
from workbench.world.render import biography

[LABELLED] = examples("labelled")

LABELS = {
    "verify": ("correct", "vague", "wrong"),
    "outcome": ("correct", "incorrect"),
    "checklist": ("consistent", "contradictory", "missing"),
    "reasoning": ("good", "poor"),
    "prefer": ("first", "second", "tie"),
    **dict.fromkeys(MARKED, MARKS),
}


def world_rows(count: int, thinking: bool = False) -> list[JsonObject]:
    """True biographies of the world, with questions in its own words."""
    world, rng = load_world(), random.Random(0)
    rows = []
    for number, question in enumerate(world.questions("test", ["biography"])[:count]):
        text = biography(list(world.by[question.title].values()), "en", rng, "It")
        rows.append(
            {
                "id": number,
                "question": question.text,
                "response": f"<think>Hm?</think>{text}" if thinking else text,
            }
        )
    return rows


def pick(text: str, labels: Sequence[str]) -> str:
    return labels[crc32(text.encode("utf-8", "replace")) % len(labels)]


def reply(task: str, found: Sequence[Element]) -> str:
    """One claim per sentence; labels and ratings are checksums of the judged text."""
    output: dict[str, list[str]] = {}
    for element in found:
        output.setdefault(element.tag, []).append(element.text)
    if task == "extract":
        sentences = [
            text
            for piece in re.findall(r"[^.<>]+\.", output["response"][0])
            if (text := piece.strip())
        ]
        return json.dumps({"sentences": [{"text": text, "claims": [text]} for text in sentences]})
    if task == "inform":
        return json.dumps({"ratings": [crc32(claim.encode()) % 5 + 1 for claim in output["claim"]]})
    if task == "checklist":
        return json.dumps({"labels": [pick(item, LABELS[task]) for item in output["item"]]})
    return json.dumps(
        {"label": pick(output["claim" if task == "verify" else "response"][0], LABELS[task])}
    )


def responses(count: int, claims: int = 4, thinking: bool = True) -> list[JsonObject]:
    """Rows for all methods, without shared claims."""
    rows = []
    for number in range(count):
        said = [
            f"Fact {number} of part {part} is {(number * 7 + part * 3) % 90}."
            for part in range(claims)
        ]
        half = claims // 2 if thinking else 0
        think = f"<think>{' '.join(said[:half])}</think>" if half else ""
        rows.append(
            {
                "id": f"r{number}",
                "question": f"What about {number}?",
                "response": f"{think}<answer>{' '.join(said[half:])}</answer>",
                "answers": [f"Fact {number}"],
                "passages": [
                    {"title": f"Page {number}", "text": f"Fact {number} is known."},
                    f"A text about {number}.",
                ],
                "checklist": [f"Item {number}.", f"Other item {number}."],
            }
        )
    return rows


def write(path: Path, rows: Iterable[JsonMapping | str]) -> Path:
    """Write JSON Lines; strings are written unchanged."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def read(path: Path) -> list[JsonObject]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def ids(path: Path) -> list[str]:
    return [row["id"] for row in read(path)]


def options(folder: Path, rows: list[Any], **more: Any) -> Options:
    return Options(write(folder / "in.jsonl", rows), folder / "out" / "f.jsonl", **more)
