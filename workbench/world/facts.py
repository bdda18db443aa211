"""Draw the entities and facts of the closed world from a seed.

Every person, with the facts about the person, belongs to a split and to a tier. The tier determines
whether a fact is in the pre-training documents. A first or last name alone does not reveal the
tier, because names are combined at random.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.world import lexicon as words
from workbench.world.schema import RELATIONS, read_tables

TIERS = ("known", "half", "partial", "unknown", "page_only")
SPLITS = ("sft", "rl", "validation", "test", "ood")

_TABLES = read_tables("facts.toml")
PEOPLE: dict[str, dict[str, int]] = _TABLES["people"]  # split -> tier -> number
OTHERS: dict[str, dict[str, int]] = _TABLES["others"]  # kind -> tier -> number
FORMS: dict[str, dict[str, list[str]]] = _TABLES["forms"]  # kind of a value -> language -> forms


@dataclass(frozen=True)
class WorldConfig:
    """The settings that determine a world.

    `scale` multiplies the number of entities of each kind; tests use less than 1.
    """

    seed: int = 0
    scale: float = 1.0
    authors: float = 0.12  # share of people with one to three books
    stale: float = 0.15  # share of people whose page also exists in an outdated edition

    def count(self, full: int) -> int:
        return max(2, round(full * self.scale))


@dataclass(frozen=True)
class Entity:
    """A person, city, company, university, award or book.

    `name` is unique in the world and serves as the entity's id. `tier` says how well the
    pre-training documents cover its facts: "known", "half", "partial", "unknown" or "page_only".
    `split` is "sft", "rl", "validation", "test" or "ood". `aliases` maps a language ("en" or "l2")
    to the accepted names.
    """

    name: str
    kind: str
    tier: str
    split: str
    aliases: Mapping[str, tuple[str, ...]]
    pronoun: str = "It"


@dataclass(frozen=True)
class Fact:
    """A statement: the entity `subject` has the value `object` in `relation`.

    `object` is the canonical form of the value, such as "1921". `forms[lang]` has all accepted
    forms in a language, the canonical form first: ("1921", "the year 1921").

    Facts of a world are true. `Ephemeral` also makes invented facts.
    """

    id: str
    subject: str
    relation: str
    object: str
    tier: str
    importance: int
    forms: Mapping[str, tuple[str, ...]] = field(repr=False)

    @property
    def covered(self) -> bool:
        """Whether the fact is in the pre-training documents."""
        return self.tier in ("known", "half")


class Names:
    """All names that a world may use, and the words that facts may have as objects.

    `values` maps a kind, such as "city" or "profession", to its names or words. `l2` maps an
    English word to its translation into the second language, which is invented.
    """

    def __init__(self, rng: random.Random) -> None:
        taken = set(words.AVOID)
        self.first = words.invented(rng, 64, taken)
        self.last = words.invented(rng, 96, taken, ending=("", "el", "in", "os"))
        self.cities = words.invented(rng, 40, taken, ending=("a", "o"))
        self.countries = words.invented(rng, 12, taken, ending=("ia", "land"))
        self.rivers = [f"{stem} River" for stem in words.invented(rng, 16, taken)]
        self.stems = words.invented(rng, 48, taken, ending=("ex", "or", "an"))
        nouns = [*words.PROFESSIONS, *words.INDUSTRIES, *words.FIELDS, *words.GENRES]
        self.l2 = words.l2_words(rng, list(dict.fromkeys(nouns)), taken)
        self.values = {  # kind -> names and words
            "profession": words.PROFESSIONS,
            "industry": words.INDUSTRIES,
            "field": words.FIELDS,
            "genre": words.GENRES,
            "country": self.countries,
            "river": self.rivers,
            "city": self.cities,
        }

    def combined(self, rng: random.Random, kinds: tuple[str, ...], count: int) -> list[str]:
        pairs = [f"{stem} {kind}" for stem in self.stems for kind in kinds]
        return rng.sample(pairs, count)


def value_forms(
    kind: str, canonical: str, lexicon: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return language ("en" or "l2") -> accepted forms of a value, the canonical form first.

    Example: "1921" of the kind "year" gives ("1921", "the year 1921") for "en".

    Args:
        kind: kind of the value, such as "year" or "city".
        canonical: canonical form of the value in English.
        lexicon: English word -> word of the second language.
    """
    if kind == "book":
        forms = (canonical, canonical.removeprefix("The "))
        return {"en": forms, "l2": forms}
    names = {"en": canonical, "l2": lexicon.get(canonical, canonical)}
    further = FORMS.get(kind, {"en": [], "l2": []})
    return {
        lang: (name, *(form.format(name, *name.split()) for form in further[lang]))
        for lang, name in names.items()
    }


def draw_entities(
    config: WorldConfig, names: Names, rng: random.Random
) -> tuple[dict[str, Entity], dict[str, str]]:
    """Draw the entities of a world and the authors of its books.

    Returns:
        (name -> entity, title of a book -> name of its author).
    """
    entities: dict[str, Entity] = {}
    authors: dict[str, str] = {}

    def add(name: str, kind: str, tier: str, split: str, pronoun: str = "It") -> None:
        entities[name] = Entity(name, kind, tier, split, value_forms(kind, name, names.l2), pronoun)

    pools = {
        "city": names.cities,
        "company": names.combined(rng, words.TYPES["company"], 48),
        "university": names.combined(rng, words.TYPES["university"], 32),
        "award": names.combined(rng, words.TYPES["award"], 24),
    }
    for kind, counts in OTHERS.items():
        tiers = [tier for tier, count in counts.items() for _ in range(config.count(count))]
        for name, tier in zip(pools[kind], tiers, strict=False):
            add(name, kind, tier, split="ood")
    combinations = [f"{first} {last}" for first in names.first for last in names.last]
    rng.shuffle(combinations)
    men = set(names.first[::2])  # every other first name
    for split, by_tier in PEOPLE.items():
        for tier, full in by_tier.items():
            for _ in range(config.count(full)):
                name = combinations.pop()
                add(name, "person", tier, split, "He" if name.split()[0] in men else "She")
    titles = words.book_titles()
    rng.shuffle(titles)
    for author in [entity for entity in entities.values() if entity.kind == "person"]:
        if rng.random() < config.authors:
            # the facts of a book have one tier
            tier = "known" if author.tier == "partial" else author.tier
            for _ in range(min(rng.choice((1, 2, 2, 3)), len(titles))):
                title = titles.pop()
                authors[title] = author.name
                add(title, "book", tier, author.split)
    return entities, authors


def draw_facts(
    entities: Mapping[str, Entity], authors: Mapping[str, str], names: Names, rng: random.Random
) -> list[Fact]:
    """Draw one fact for each entity and each relation of its kind.

    A fact has the tier of its entity. For a person in the tier "partial", half of the facts have
    the tier "known", and the others have the tier "unknown".

    Args:
        authors: title of a book -> name of its author.
    """
    values: dict[str, list[str]] = {
        **names.values,
        "population": words.POPULATIONS,
        "year": words.YEARS,
        **{kind: [e.name for e in entities.values() if e.kind == kind] for kind in OTHERS},
    }
    facts: list[Fact] = []
    for entity in entities.values():
        relations = [relation for relation in RELATIONS.values() if relation.subject == entity.kind]
        partial = entity.tier == "partial"
        known = rng.sample(relations, len(relations) // 2) if partial else []
        for relation in relations:
            tier = entity.tier
            if partial:
                tier = "known" if relation in known else "unknown"
            if relation.name == "author":
                canonical = authors[entity.name]
            elif relation.object == "date":
                parts = (words.DAYS, words.MONTHS, words.YEARS)
                canonical = " ".join([rng.choice(part) for part in parts])
            elif relation.name == "birth_year":
                canonical = rng.choice(words.BIRTH_YEARS)
            else:
                canonical = rng.choice(values[relation.object])
            forms = value_forms(relation.object, canonical, names.l2)
            name = f"f{len(facts):05d}"
            facts.append(
                Fact(name, entity.name, relation.name, canonical, tier, relation.importance, forms)
            )
    return facts


class KnowledgeBase:
    """The entities and facts of a world, all drawn from the seed of `config`.

    Attributes:
        names: all names, and the lexicon of the second language.
        entities: name -> entity.
        facts: all facts, in the order in which they were drawn.
        by: subject -> relation -> fact.
        books: person -> author facts of the person's books.
    """

    def __init__(self, config: WorldConfig) -> None:
        self.config = config
        rng = random.Random(f"world-{config.seed}")
        self.names = Names(rng)
        self.entities, authors = draw_entities(config, self.names, rng)
        self.facts = draw_facts(self.entities, authors, self.names, rng)
        self.by: dict[str, dict[str, Fact]] = {}
        self.books: dict[str, list[Fact]] = {}
        for fact in self.facts:
            self.by.setdefault(fact.subject, {})[fact.relation] = fact
            if fact.relation == "author":
                self.books.setdefault(fact.object, []).append(fact)

    def covered(self, name: str) -> list[Fact]:
        """Return the facts of an entity that the pre-training documents state."""
        return [fact for fact in self.by[name].values() if fact.covered]

    def covered_books(self, name: str) -> list[Fact]:
        """Return the author facts of a person's books that the pre-training documents state.

        An author fact has the book as its subject and the person as its object.
        """
        return [fact for fact in self.books.get(name, ()) if fact.covered]

    def people(self, split: str) -> list[Entity]:
        """Return the people of a split, one of `SPLITS` (such as "rl" or "test")."""
        entities = self.entities.values()
        return [one for one in entities if one.kind == "person" and one.split == split]
