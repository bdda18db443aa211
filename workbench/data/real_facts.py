"""The table of real facts about countries and cities: entities, questions and pages.

`benchmarks/real/build.py` makes the table from GeoNames (CC BY 4.0). The population of an entity
decides its tier ("top", "middle" or "rare"). Each entity belongs to one split.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from workbench.data.files import read_records
from workbench.types import JsonObject, Passage, Question, WorkbenchError

# The repository has this folder; an installed package does not.
FOLDER = Path(__file__).resolve().parents[2] / "data" / "real-facts"
TIERS = ("top", "middle", "rare")


@dataclass(frozen=True)
class Entity:
    """A country or a city.

    Attributes:
        facts: name of a relation, such as "capital" -> accepted forms of its value. For "borders",
            these are the names of all neighbours.
        numbers: "population" in people and "area" in km².
    """

    name: str
    kind: str
    aliases: tuple[str, ...]
    facts: Mapping[str, tuple[str, ...]]
    numbers: Mapping[str, float]


@cache
def entities() -> tuple[Entity, ...]:
    """Return all countries and cities of the table of real facts.

    Raises:
        WorkbenchError: the table is missing. Only a clone of the repository has it.
    """
    return tuple(
        Entity(
            row["name"],
            row["kind"],
            tuple(row["aliases"]),
            {relation: tuple(values) for relation, values in row["facts"].items()},
            row["numbers"],
        )
        for row in _rows("entities")
    )


@cache
def questions() -> tuple[Question, ...]:
    """Return the questions of the table of real facts, about its countries and cities.

    `meta` has these keys:

    * "relation": what is asked for, such as "capital"
    * "tier": "top", "middle" or "rare", by the population of the country or city
    * "split": "rl", "validation" or "test"
    * "lang": always "en"
    """
    return tuple(
        Question(
            row["id"],
            row["question"],
            tuple(row["answers"]),
            row["title"],
            kind=row["kind"],
            meta={"lang": "en", **{name: row[name] for name in ("relation", "tier", "split")}},
        )
        for row in _rows("questions")
    )


@cache
def pages() -> tuple[Passage, ...]:
    """Return a page of text about each entity; the page's title is the entity's name."""
    return tuple(Passage(row["id"], row["title"], row["text"]) for row in _rows("pages"))


def _rows(name: str) -> list[JsonObject]:
    path = FOLDER / f"{name}.jsonl.gz"
    if not path.exists():
        raise WorkbenchError(
            f"no table of real facts at '{path}': work in a clone of the repository, which has this"
            " table, or give other questions with --questions"
        )
    return [row for _, row in read_records(path)]
