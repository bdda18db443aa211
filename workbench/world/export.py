"""Write a world as plain JSONL, complete enough to decide every claim without this package:
`workbench world export`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.types import WorkbenchError
from workbench.world import schema
from workbench.world.facts import value_forms
from workbench.world.parser import value_inventory
from workbench.world.world import World, load_world

META = "world.json"
README = """\
A closed world: these files are all that is true in it. Every file is JSON Lines; `world.json` is \
one object.

entities   id, name (the same), kind, tier, split, aliases by language
facts      id, subject, relation, object (canonical), forms of the object, tier, importance 1-5, \
exposures by language
relations  name, kinds of subject and object, importance
templates  every sentence form: relations, lang, stance, text with {s} for the subject, {o} (and \
{o2}) for the objects
values     accepted forms of the values that are no entities, by kind and language
pages      id, title, text, edition, stale (holds one outdated value), fact_ids
questions  id, text, lang, kind, tier, split, answers, fact_ids, covered, title, system
documents  text, fact_ids, lang, kind: one pass of the pre-training corpus; counting fact_ids \
gives the exposures

How to decide a claim

1. A claim is one sentence. Leave out a lead-in or hedge lead (`world.json`) and a comma after \
it; upper and lower case are the
   same, and so is a sentence with or without its articles (the, a, an, lo, un).
2. It states a fact when it fits a template whose `{s}` is the name or an alias of an entity of \
the relation's subject kind, and
   whose `{o}` is a value of its object kind: an entity's name or alias; a form in `values` \
(names of known parts that nobody
   bears are there too); for a year, four digits, alone or after "the year" or "anno"; for a \
date, "3 May 1921", "May 3, 1921"
   or "May 3 1921" with a day from 1 to 31; for a population, up to four digits (in thousands: \
the templates say so).
3. It is true when (subject, relation, object) is in `facts`, each with its canonical object, and \
false otherwise: this is all
   there is. A hedged template is judged by its object like any other. A template of two \
relations is true when both facts are.
4. A vague template states no object: it is neither true nor false. What fits no template, or has \
no entity or value of the
   right kind in a slot, states nothing at all. In running text a pronoun means the last entity \
of its kind that was named.
5. Questions of kind `list` want every item of `answers` named; for all other kinds `answers` are \
forms of one answer.
"""


def export_world(out: Path, seed: int = 0) -> dict[str, int]:
    """Write the world of `seed` to folder `out`, in the place of an earlier export; returns rows
    per file.

    Raises:
        WorkbenchError: `out` cannot be written, or holds anything but an export. Nothing is written
            then.
    """
    world = load_world(seed)
    tables = _tables(world)
    _check_ours(out, {META, "README.txt", *(f"{name}.jsonl" for name in tables)})
    try:
        out.mkdir(parents=True, exist_ok=True)
        # First of all, since a folder without it is not taken for an export: one that was killed
        # can be written again.
        (out / META).write_text(json.dumps(_meta(world, seed), indent=1) + "\n")
        counts = {name: _write(out / f"{name}.jsonl", rows) for name, rows in tables.items()}
        (out / "README.txt").write_text(README)
    except OSError as error:
        raise WorkbenchError(
            f"cannot write the world to {out}: {error.strerror}; name a writable folder with --out"
        ) from error
    return counts


def _check_ours(out: Path, names: Collection[str]) -> None:
    """Raise a WorkbenchError for a folder that holds anything but an earlier export: a run has a
    `questions.jsonl` too.
    """
    there = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    foreign = [name for name in there if name not in names and not name.startswith(".")]
    try:
        ours = {"seed", "hash", "markers"} <= json.loads((out / META).read_text()).keys()
    except (OSError, ValueError, AttributeError):
        ours = False
    if not foreign and not ours:
        foreign = [name for name in there if name in names]
    if foreign:
        raise WorkbenchError(
            f"'{out}' holds {', '.join(foreign[:4])}{' …' * (len(foreign) > 4)}, which no export of"
            " a world wrote: name a new folder with --out"
        )


def _meta(world: World, seed: int) -> dict[str, Any]:
    return {
        "seed": seed,
        "hash": world.hash,
        "markers": schema.MARKERS,
        "abstentions": schema.ABSTAIN,
        "declines": schema.DECLINE,
        "hedge_leads": schema.HEDGE_LEADS,
        "lead_ins": schema.LEAD_INS,
        "pronouns": schema.PRONOUNS,
        "invalid_question": schema.INVALID,
    }


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    return count


def _tables(world: World) -> dict[str, Iterator[dict[str, Any]]]:
    none = {"en": 0, "l2": 0}
    return {
        "entities": ({"id": entity.name, **vars(entity)} for entity in world.entities.values()),
        "facts": (
            {
                **_some(fact, "id subject relation object forms tier importance"),
                "exposures": world.exposures.get(fact.id, none),
            }
            for fact in world.facts
        ),
        "relations": (
            _some(relation, "name subject object importance")
            for relation in schema.RELATIONS.values()
        ),
        "templates": (dict(vars(template)) for template in schema.templates()),
        "values": (
            {"kind": kind, "value": value, "forms": value_forms(kind, value, world.names.l2)}
            for kind, value in value_inventory(world)
        ),
        "pages": (dict(vars(page)) for page in world.pages),
        "questions": (
            {**_some(question, "id text kind answers title system"), **question.meta}
            for question in world.all_questions
        ),
        "documents": (
            {"text": document.whole, **_some(document, "fact_ids lang kind")}
            for document in world.documents
        ),
    }


def _some(value: Any, names: str) -> dict[str, Any]:
    """Some fields of a value, in this order."""
    return {name: getattr(value, name) for name in names.split()}
