"""Every question of the closed world, in both languages, with gold answers, tier and the facts
it rests on.

RL uses only questions about people of the `rl` split of the kinds `single`, `numeric`,
`biography` and `long_form`. What the split `ood` holds is new to it in kind (two-hop,
comparison, false premise, list, yes/no) or in entity (companies, books, …).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from workbench.types import Question
from workbench.world import schema
from workbench.world.facts import TIERS, Entity, Fact

KINDS = (
    "single",
    "two_hop",
    "comparison",
    "false_premise",
    "list",
    "yes_no",
    "numeric",
    "biography",
    "long_form",
)
SHORT_KINDS = ("single", "numeric")
_ORDER = {tier: rank for rank, tier in enumerate(TIERS)}


class QuestionWriter:
    """Writes the questions of one world. `by[subject][relation]` holds the facts of each
    subject.
    """

    def __init__(
        self,
        entities: Mapping[str, Entity],
        by: Mapping[str, Mapping[str, Fact]],
        books: Mapping[str, list[Fact]],
        seed: int,
    ) -> None:
        self.entities, self.by, self.books = entities, by, books
        self.rng = random.Random(f"questions-{seed}")
        jobs = (facts["profession"] for facts in by.values() if "profession" in facts)
        self.professions = dict(sorted((job.object, job.forms) for job in jobs))

    def write(self) -> list[Question]:
        drafts = [draft for entity in self.entities.values() for draft in self._of(entity)]
        drafts += list(self._comparisons())
        counts: dict[str, int] = {}
        questions = []
        for kind, lang, split, tier, title, text, answers, facts, system in drafts:
            counts[kind] = counts.get(kind, 0) + 1
            meta = {
                "lang": lang,
                "tier": tier,
                "split": split,
                "fact_ids": tuple(fact.id for fact in facts),
                "covered": all(fact.covered for fact in facts),
            }
            name = f"{kind}-{counts[kind]:05d}"
            questions.append(
                Question(name, text, tuple(answers), title, kind=kind, system=system, meta=meta)
            )
        return questions

    def _of(self, entity: Entity) -> Iterator[tuple]:
        person = entity.kind == "person"
        split = entity.split if person else "ood"
        # where question kinds go that RL must not see
        beyond = split if split in ("sft", "validation") else "ood"
        facts = self.by[entity.name]
        for lang in ("en", "l2"):
            for fact in facts.values():
                relation = schema.RELATIONS[fact.relation]
                kind = "numeric" if relation.numeric else "single"
                tier = entity.tier if person else fact.tier
                text = self.rng.choice(relation.asks[lang]).format(s=entity.name)
                yield kind, lang, split, tier, entity.name, text, fact.forms[lang], [fact], ""
            if not person:
                continue
            text = self.rng.choice(schema.BIOGRAPHY[lang]).format(s=entity.name)
            yield (
                "biography",
                lang,
                split,
                entity.tier,
                entity.name,
                text,
                (),
                list(facts.values()),
                "",
            )
            if split != "rl":
                yield from self._beyond(entity, facts, lang, beyond)
        if person and split != "ood":
            other = self.rng.choice([e for e in self._people(split) if e.name != entity.name])
            text = schema.LONG_FORM["en"][0].format(s=entity.name, t=other.name)
            both = [*facts.values(), *self.by[other.name].values()]
            yield (
                "long_form",
                "en",
                split,
                weaker(entity, other),
                f"{entity.name};{other.name}",
                text,
                (),
                both,
                "",
            )

    def _beyond(
        self, entity: Entity, facts: Mapping[str, Fact], lang: str, split: str
    ) -> Iterator[tuple]:
        """Question kinds that RL never sees, about one person."""
        name, tier = entity.name, entity.tier
        for (first, second), texts in schema.TWO_HOP.items():
            bridge = facts[first]
            target = self.by[bridge.object][second]
            text = self.rng.choice(texts[lang]).format(s=name)
            yield (
                "two_hop",
                lang,
                split,
                tier,
                name,
                text,
                target.forms[lang],
                [bridge, target],
                schema.THINK,
            )
        wrong = self.rng.choice([p for p in self.professions if p != facts["profession"].object])
        form = self.rng.randrange(len(schema.FALSE_PREMISE[lang]))
        gold_fact = facts[schema.FALSE_PREMISE_ASKS[form]]
        for valid in (False, True):
            profession = (
                self.by[name]["profession"].forms[lang][0]
                if valid
                else self.professions[wrong][lang][0]
            )
            text = schema.FALSE_PREMISE[lang][form].format(s=name, o=profession)
            gold = gold_fact.forms[lang] if valid else (schema.INVALID[lang],)
            kind = "single" if valid else "false_premise"
            if valid and split != "sft":
                # the true-premise twin only teaches; as a test question it would be a second
                # `single`
                continue
            yield (
                kind,
                lang,
                split,
                tier,
                name,
                text,
                gold,
                [facts["profession"], gold_fact],
                schema.THINK,
            )
        fact = facts[self.rng.choice(schema.PERSON_RELATIONS)]
        relation, truth = schema.RELATIONS[fact.relation], self.rng.random() < 0.5
        shown = fact if truth else self._other(fact)
        text = self.rng.choice(relation.checks[lang]).format(s=name, o=shown.forms[lang][0])
        yield (
            "yes_no",
            lang,
            split,
            tier,
            name,
            text,
            (schema.YES_NO[lang][0 if truth else 1],),
            [fact],
            schema.THINK,
        )
        if written := self.books.get(name):
            text = self.rng.choice(schema.LIST[lang]).format(s=name)
            yield (
                "list",
                lang,
                split,
                tier,
                name,
                text,
                tuple(fact.subject for fact in written),
                written,
                schema.THINK,
            )

    def _comparisons(self) -> Iterator[tuple]:
        """Baiting comparisons: the form names two candidates, so a guess is always at hand."""
        for split in ("sft", "validation", "test"):
            people = self._people(split)
            for lang in ("en", "l2"):
                for entity in people:
                    other = self.rng.choice(people)
                    years = [self.by[person.name]["birth_year"] for person in (entity, other)]
                    if years[0].object == years[1].object:
                        continue
                    first = min(
                        zip(years, (entity, other), strict=True),
                        key=lambda pair: int(pair[0].object),
                    )[1]
                    text = self.rng.choice(schema.COMPARISON[lang]).format(
                        s=entity.name, t=other.name
                    )
                    where, title = (
                        ("ood" if split == "test" else split),
                        f"{entity.name};{other.name}",
                    )
                    yield (
                        "comparison",
                        lang,
                        where,
                        weaker(entity, other),
                        title,
                        text,
                        (first.name,),
                        years,
                        schema.THINK,
                    )

    def _people(self, split: str) -> list[Entity]:
        return [
            entity
            for entity in self.entities.values()
            if entity.kind == "person" and entity.split == split
        ]

    def _other(self, fact: Fact) -> Fact:
        """A fact of the same relation with another object: the material of a false yes/no
        question.
        """
        people = [facts[fact.relation] for facts in self.by.values() if fact.relation in facts]
        return self.rng.choice([other for other in people if other.object != fact.object])


def weaker(*entities: Entity) -> str:
    """The tier of the one of these that the corpus shows least."""
    return max((entity.tier for entity in entities), key=_ORDER.__getitem__)


def select(
    questions: Sequence[Question], split: str, kinds: Sequence[str] | None, lang: str
) -> list[Question]:
    return [
        q
        for q in questions
        if q.meta["split"] == split and q.meta["lang"] == lang and (not kinds or q.kind in kinds)
    ]
