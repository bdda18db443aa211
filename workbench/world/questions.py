"""Write the questions of the closed world in both languages.

A question has gold answers, a tier and the ids of the facts that its answer needs. The split `rl`
has only questions about people, of the kinds `single`, `numeric`, `biography` and `long_form`. The
split `ood` (out of distribution) has other kinds (two-hop, comparison, false premise, list, yes/no)
and other entities (companies, books, …).
"""

import random
from collections import Counter
from collections.abc import Sequence

from workbench.types import Question
from workbench.world import schema
from workbench.world.facts import TIERS, Entity, Fact, KnowledgeBase

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
    """Writer of the questions of one closed world."""

    def __init__(self, base: KnowledgeBase) -> None:
        self.base, self.by = base, base.by
        self.rng = random.Random(f"questions-{base.config.seed}")
        jobs = (facts["profession"] for facts in self.by.values() if "profession" in facts)
        # only professions that occur, so that each has a form in both languages
        self.professions = dict(sorted((job.object, job.forms) for job in jobs))
        self.counts = Counter[str]()
        self.questions: list[Question] = []

    def write(self) -> list[Question]:
        for entity in self.base.entities.values():
            self._about(entity)
        for split in ("sft", "validation", "test"):
            self._comparisons(split)
        return self.questions

    def _add(
        self,
        kind: str,
        lang: str,
        split: str,
        tier: str,
        title: str,
        text: str,
        answers: Sequence[str],
        facts: Sequence[Fact],
        system: str = "",
    ) -> None:
        self.counts[kind] += 1
        name = f"{kind}-{self.counts[kind]:05d}"
        meta = {
            "lang": lang,
            "tier": tier,
            "split": split,
            "fact_ids": tuple(fact.id for fact in facts),
            "covered": all(fact.covered for fact in facts),
        }
        self.questions.append(
            Question(name, text, tuple(answers), title, kind=kind, system=system, meta=meta)
        )

    def _about(self, entity: Entity) -> None:
        """Write the questions about one entity."""
        name, tier, facts = entity.name, entity.tier, self.by[entity.name]
        person = entity.kind == "person"
        split = entity.split if person else "ood"
        for lang in ("en", "l2"):
            for fact in facts.values():
                relation = schema.RELATIONS[fact.relation]
                text = self.rng.choice(relation.asks[lang]).format(s=name)
                kind = "numeric" if relation.numeric else "single"
                # a partially known person counts as "partial", whichever fact the question needs
                exposed = tier if person else fact.tier
                self._add(kind, lang, split, exposed, name, text, fact.forms[lang], [fact])
            if person:
                text = self.rng.choice(schema.BIOGRAPHY[lang]).format(s=name)
                self._add("biography", lang, split, tier, name, text, (), list(facts.values()))
                if split != "rl":
                    self._beyond(entity, lang)
        if person and split != "ood":
            other = self.rng.choice([e for e in self.base.people(split) if e.name != name])
            text = schema.LONG_FORM["en"][0].format(s=name, t=other.name)
            both = [*facts.values(), *self.by[other.name].values()]
            title, weakest = f"{name};{other.name}", weaker(entity, other)
            self._add("long_form", "en", split, weakest, title, text, (), both)

    def _beyond(self, entity: Entity, lang: str) -> None:
        """Write questions about one person, of the kinds that RL does not use."""
        name, facts = entity.name, self.by[entity.name]
        split = entity.split if entity.split in ("sft", "validation") else "ood"

        def add(kind: str, text: str, answers: Sequence[str], needed: Sequence[Fact]) -> None:
            self._add(kind, lang, split, entity.tier, name, text, answers, needed, schema.THINK)

        for (first, second), texts in schema.TWO_HOP.items():
            bridge = facts[first]
            target = self.by[bridge.object][second]
            text = self.rng.choice(texts[lang]).format(s=name)
            add("two_hop", text, target.forms[lang], [bridge, target])
        true = facts["profession"]
        wrong = self.rng.choice([job for job in self.professions if job != true.object])
        form = self.rng.randrange(len(schema.FALSE_PREMISE[lang]))
        asked = facts[schema.FALSE_PREMISE_ASKS[form]]
        question = schema.FALSE_PREMISE[lang][form]
        text = question.format(s=name, o=self.professions[wrong][lang][0])
        add("false_premise", text, (schema.INVALID[lang],), [true, asked])
        if split == "sft":
            # with a true premise, for training only: in a test it would be another `single`
            text = question.format(s=name, o=true.forms[lang][0])
            add("single", text, asked.forms[lang], [true, asked])
        fact = facts[self.rng.choice(schema.PERSON_RELATIONS)]
        truth = self.rng.random() < 0.5
        claimed = fact if truth else self._other(fact)
        check = self.rng.choice(schema.RELATIONS[fact.relation].checks[lang])
        text = check.format(s=name, o=claimed.forms[lang][0])
        add("yes_no", text, (schema.YES_NO[lang][0 if truth else 1],), [fact])
        if written := self.base.books.get(name):
            text = self.rng.choice(schema.LIST[lang]).format(s=name)
            add("list", text, [book.subject for book in written], written)

    def _comparisons(self, split: str) -> None:
        """Write questions that ask which of two people was born first.

        They test guessing, because the question names both candidates.
        """
        people = self.base.people(split)
        beyond = "ood" if split == "test" else split
        for lang in ("en", "l2"):
            for entity in people:
                other = self.rng.choice(people)
                years = [self.by[person.name]["birth_year"] for person in (entity, other)]
                if years[0].object == years[1].object:  # includes a person and itself
                    continue
                first = min(years, key=lambda year: int(year.object)).subject
                form = self.rng.choice(schema.COMPARISON[lang])
                text = form.format(s=entity.name, t=other.name)
                title, tier = f"{entity.name};{other.name}", weaker(entity, other)
                think = schema.THINK
                self._add("comparison", lang, beyond, tier, title, text, (first,), years, think)

    def _other(self, fact: Fact) -> Fact:
        """Draw a fact of the same relation with another object.

        It is the wrong statement in a yes/no question whose answer is no.
        """
        people = [facts[fact.relation] for facts in self.by.values() if fact.relation in facts]
        return self.rng.choice([other for other in people if other.object != fact.object])


def weaker(*entities: Entity) -> str:
    """Return the tier of the least known entity, that is, the tier that comes last in `TIERS`."""
    return max((entity.tier for entity in entities), key=_ORDER.__getitem__)


def select(
    questions: Sequence[Question], split: str, kinds: Sequence[str] | None, lang: str
) -> list[Question]:
    return [
        q
        for q in questions
        if q.meta["split"] == split and q.meta["lang"] == lang and (not kinds or q.kind in kinds)
    ]
