"""Write the pages about the entities of the closed world, which are passages for retrieval.

Entities of the tier "unknown" have no page. People of the tier "page_only" have a page, but are in
no pre-training document.
"""

import random
from dataclasses import dataclass

from workbench.world.facts import Entity, Fact, KnowledgeBase
from workbench.world.schema import RELATIONS

STALE_RELATION = "employer"
CURRENT, FORMER = 1985, 1960  # editions; every page begins with its own


@dataclass(frozen=True)
class Page:
    """A page of text about the entity named by `title`. Pages are passages for retrieval.

    `edition` is the year of the page. If `stale` is True, the page is an outdated edition: it has
    one outdated value, which the current page of the entity corrects. `fact_ids` are the ids of the
    true facts that the page states.
    """

    id: str
    title: str
    text: str
    edition: int
    stale: bool
    fact_ids: tuple[str, ...]


def write_pages(base: KnowledgeBase) -> list[Page]:
    rng = random.Random(f"pages-{base.config.seed}")
    entities, by = base.entities.values(), base.by
    companies = [entity.name for entity in entities if entity.kind == "company"]
    pages: list[Page] = []

    def add(entity: Entity, edition: int, stale: bool, lines: list[str], facts: list[Fact]) -> None:
        ids = tuple(fact.id for fact in facts)
        text = " ".join((f"Edition of {edition}.", *lines))
        pages.append(
            Page(f"p{len(pages):05d}", entity.name, text, edition, stale=stale, fact_ids=ids)
        )

    for entity in entities:
        if entity.tier == "unknown":  # its facts are not available by retrieval either
            continue
        facts = [*by[entity.name].values(), *base.books.get(entity.name, [])]
        add(entity, CURRENT, stale=False, lines=[_line(fact, rng) for fact in facts], facts=facts)
        if entity.kind == "person" and rng.random() < base.config.stale:
            current = [fact for fact in facts if fact.relation != STALE_RELATION]
            former = rng.choice(
                [name for name in companies if name != by[entity.name][STALE_RELATION].object]
            )
            old = RELATIONS[STALE_RELATION].states["en"][0].format(s=entity.name, o=former)
            add(
                entity,
                FORMER,
                stale=True,
                lines=[old, *(_line(fact, rng) for fact in current)],
                facts=current,
            )
    return pages


def _line(fact: Fact, rng: random.Random) -> str:
    return rng.choice(RELATIONS[fact.relation].states["en"]).format(
        s=fact.subject, o=fact.forms["en"][0]
    )
