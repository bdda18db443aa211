"""Decide claims only from an exported world, following its README.txt, without importing the
package.

Usage: python standalone_judge.py EXPORT CLAIMS.json → a JSON list with true, false or null
(states nothing) per claim.
"""

import json
import re
import sys
from pathlib import Path

folder, claims = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())


def rows(name):
    return [json.loads(line) for line in (folder / f"{name}.jsonl").open()]


kinds = {entity["name"]: entity["kind"] for entity in rows("entities")}
names = {}
for entity in rows("entities"):
    for forms in entity["aliases"].values():
        for alias in forms:
            names[
                " ".join(
                    w for w in alias.lower().split() if w not in ("the", "a", "an", "lo", "un")
                )
            ] = entity["name"]
values: dict[str, dict[str, str]] = {}
for value in rows("values"):
    for forms in value["forms"].values():
        for form in forms:
            key = " ".join(
                word for word in form.lower().split() if word not in ("the", "a", "an", "lo", "un")
            )
            values.setdefault(value["kind"], {})[key] = value["value"]
relations = {relation["name"]: relation for relation in rows("relations")}
facts = {(fact["subject"], fact["relation"], fact["object"]) for fact in rows("facts")}
months = (
    "january february march april may june july august september october november december".split()
)
world = json.loads((folder / "world.json").read_text())
leads = [
    lead.lower()
    for group in ("lead_ins", "hedge_leads")
    for forms in world[group].values()
    for lead in forms
]


def read_object(kind, text):
    if kind == "year" and (match := re.fullmatch(r"(?:year |anno )?(\d{4})", text)):
        return match[1]
    if kind == "date" and (
        date := re.fullmatch(r"(\d+) (\w+) (\d{4})|(\w+) (\d+),? (\d{4})", text)
    ):
        day, month, year = (date[1], date[2], date[3]) if date[1] else (date[5], date[4], date[6])
        return (
            f"{int(day)} {month.capitalize()} {year}"
            if month in months and 1 <= int(day) <= 31
            else None
        )
    if kind == "population":
        return text if re.fullmatch(r"\d{1,4}", text) else None
    return values.get(kind, {}).get(text)


def article_free(text):
    return " ".join(word for word in text.split() if word not in ("the", "a", "an", "lo", "un"))


def decide(claim):
    claim = claim.lower().rstrip(".")
    for lead in leads:
        if claim.startswith(lead):
            claim = claim[len(lead) :].lstrip(", ")
    claim = article_free(claim)
    for template in templates:
        match = template["pattern"].fullmatch(claim)
        if not match or template["stance"] == "vague":
            continue
        subject = names.get(match["s"])
        stated = []
        for name, slot in zip(template["relations"], ("o", "o2"), strict=False):
            relation = relations[name]
            value = read_object(relation["object"], match[slot])
            if subject is None or kinds[subject] != relation["subject"] or value is None:
                break
            stated.append((subject, name, value) in facts)
        else:
            return all(stated)
    return None


def compiled(template):
    pattern = re.escape(article_free(template["text"].lower().rstrip(".")))
    for slot in ("s", "o", "o2"):
        pattern = pattern.replace(re.escape("{" + slot + "}"), f"(?P<{slot}>.+?)")
    return {**template, "pattern": re.compile(pattern)}


templates = [compiled(template) for template in rows("templates")]
print(json.dumps([decide(claim) for claim in claims]))
