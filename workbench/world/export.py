"""Write a world as JSON Lines files (`workbench world export`).

The files are sufficient to decide every claim about the world without this package.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from workbench.types import JsonMapping, JsonObject, WorkbenchError
from workbench.world import schema
from workbench.world.documents import NO_EXPOSURES
from workbench.world.facts import value_forms
from workbench.world.parser import value_inventory
from workbench.world.world import World, load_world

META = "world.json"
README = """\
A closed world. Every file is JSON Lines; `world.json` is one object.

entities   id, name (equal to id), kind, tier, split, aliases by language
facts      id, subject, relation, object (canonical), forms of the object, tier, importance 1-5,
           exposures by language
relations  name, kinds of subject and object, importance
templates  all sentence forms: relations, lang, stance, text with {s} for the subject, {o} and {o2}
           for the objects
values     accepted forms of the values that are not entities, by kind and language
pages      id, title, text, edition, stale (has one outdated value), fact_ids
questions  id, text, lang, kind, tier, split, answers, fact_ids, covered, title, system
documents  text, fact_ids, lang, kind: one pass of the pre-training corpus; the counts of fact_ids
           are the exposures

How to decide a claim

1. A claim is one sentence. Remove a lead-in or hedge lead (`world.json`) and a comma after it.
   Ignore case and articles (the, a, an, lo, un).
2. It states a fact if it matches a template whose `{s}` is the name or an alias of an entity of the
   relation's subject kind, and whose `{o}` is a value of its object kind: the name or an alias of
   an entity; a form in `values`, which include unused combinations of names; for a year, four
   digits, alone or after "the year" or "anno"; for a date, "3 May 1921", "May 3, 1921" or
   "May 3 1921" with a day from 1 to 31; for a population, up to four digits (in thousands, as the
   templates state).
3. It is true if (subject, relation, canonical object) is in `facts`, and false otherwise. A hedged
   template is judged by its object in the same way. A template with two relations is true if both
   facts are true.
4. A vague template has no object and is neither true nor false. A sentence that matches no
   template, or has no entity or value of the right kind in a slot, states nothing. In running text
   a pronoun means the last named entity of its kind.
5. Questions of kind `list` require every item of `answers`; for all other kinds `answers` are forms
   of one answer.
"""


def export_world(out: Path, seed: int = 0) -> dict[str, int]:
    """Write the world of `seed` to the folder `out`; return file name -> number of rows.

    An earlier export in the folder is replaced.

    Raises:
        WorkbenchError: `out` is not writable, or contains files that are not from an export. In the
            second case, nothing is written.
    """
    world = load_world(seed)
    tables = _tables(world)
    meta = {
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
    _check_ours(out, {META, "README.txt", *(f"{name}.jsonl" for name in tables)})
    try:
        out.mkdir(parents=True, exist_ok=True)
        # first, because it marks the folder as an export, which can be resumed after a kill
        (out / META).write_text(json.dumps(meta, indent=1) + "\n")
        counts = {name: _write(out / f"{name}.jsonl", rows) for name, rows in tables.items()}
        (out / "README.txt").write_text(README)
    except OSError as error:
        raise WorkbenchError(
            f"cannot write the world to {out}: {error.strerror}; name a writable folder with --out"
        ) from error
    return counts


def _check_ours(out: Path, names: Collection[str]) -> None:
    """Raise a WorkbenchError if a folder has files that are not from an earlier export.

    File names are not sufficient for this: a run has a `questions.jsonl`, too.
    """
    existing = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    foreign = [name for name in existing if name not in names and not name.startswith(".")]
    try:
        ours = {"seed", "hash", "markers"} <= json.loads((out / META).read_text()).keys()
    except (OSError, ValueError, AttributeError):
        ours = False
    if not foreign and not ours:
        foreign = [name for name in existing if name in names]
    if foreign:
        raise WorkbenchError(
            f"'{out}' has files that no export of a world wrote ({', '.join(foreign[:4])}"
            f"{' …' * (len(foreign) > 4)}): name a new folder with --out"
        )


def _write(path: Path, rows: Iterable[JsonMapping]) -> int:
    """Write rows as JSON Lines, and return their number."""
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
    return count


def _tables(world: World) -> dict[str, Iterator[JsonObject]]:
    return {
        "entities": ({"id": entity.name, **vars(entity)} for entity in world.entities.values()),
        "facts": (
            {
                **fields_of(fact, "id subject relation object forms tier importance"),
                "exposures": world.exposures.get(fact.id, NO_EXPOSURES),
            }
            for fact in world.facts
        ),
        "relations": (
            fields_of(relation, "name subject object importance")
            for relation in schema.RELATIONS.values()
        ),
        "templates": (dict(vars(template)) for template in schema.templates()),
        "values": (
            {"kind": kind, "value": value, "forms": value_forms(kind, value, world.names.l2)}
            for kind, value in value_inventory(world)
        ),
        "pages": (dict(vars(page)) for page in world.pages),
        "questions": (
            {**fields_of(question, "id text kind answers title system"), **question.meta}
            for question in world.all_questions
        ),
        "documents": (
            {"text": document.whole, **fields_of(document, "fact_ids lang kind")}
            for document in world.documents
        ),
    }


def fields_of(value: object, names: str) -> JsonObject:
    """Return {name: value} for some attributes of an object.

    Args:
        names: names of the attributes, separated by spaces.
    """
    return {name: getattr(value, name) for name in names.split()}
