"""Describe the closed world or one of its entities, for the command `workbench world`."""

from collections import Counter

from workbench.types import JsonObject, WorkbenchError
from workbench.world.documents import NO_EXPOSURES
from workbench.world.export import fields_of
from workbench.world.world import load_world


def describe(name: str | None = None, seed: int = 0) -> JsonObject:
    """Return the counts of a world or, with `name`, a description of one entity.

    The counts are those of entities, facts, questions, pages and documents. The description has the
    entity's facts with tier and exposures, its pages, up to three of its documents, and its English
    questions.

    Raises:
        WorkbenchError: the world has no entity `name`.
    """
    world = load_world(seed)
    if name is None:
        questions = Counter(
            (q.meta["split"], q.kind) for q in world.all_questions if q.meta["lang"] == "en"
        )
        return {
            "seed": seed,
            "hash": world.hash,
            "entities": dict(Counter(entity.kind for entity in world.entities.values())),
            "people_by_tier": dict(
                Counter(e.tier for e in world.entities.values() if e.kind == "person")
            ),
            "facts_by_tier": dict(Counter(fact.tier for fact in world.facts)),
            "questions": {
                f"{split}/{kind}": count for (split, kind), count in sorted(questions.items())
            },
            "pages": len(world.pages),
            "stale_pages": sum(page.stale for page in world.pages),
            "documents": dict(Counter(f"{d.kind}/{d.lang}" for d in world.documents)),
            "examples": [e.name for e in world.entities.values() if e.split == "test"][::60],
        }
    entity = next(
        (e for e in world.entities.values() if e.name.casefold() == name.casefold()), None
    )
    if entity is None:
        examples = ", ".join(describe(seed=seed)["examples"])
        raise WorkbenchError(f"no entity {name!r} in world {seed}; try one of: {examples}")
    facts = world.by[entity.name].values()
    return {
        **fields_of(entity, "name kind tier split"),
        "facts": [
            {
                **fields_of(fact, "relation object tier importance"),
                "exposures": world.exposures.get(fact.id, NO_EXPOSURES),
            }
            for fact in facts
        ],
        "pages": [
            fields_of(page, "edition text") for page in world.pages if page.title == entity.name
        ],
        "documents": [
            d.whole for d in world.documents if {fact.id for fact in facts} & set(d.fact_ids)
        ][:3],
        "questions": [
            {"kind": q.kind, "text": q.text, "answers": list(q.answers)}
            for q in world.all_questions
            if q.title == entity.name and q.meta["lang"] == "en"
        ],
    }
