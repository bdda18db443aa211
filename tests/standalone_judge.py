"""Decide claims from an exported world alone, written from its README.txt: nothing of the package is imported.

Usage: python standalone_judge.py EXPORT CLAIMS.json → a JSON list with true, false or null (states nothing) per claim.
"""

import json
import re
import sys
from pathlib import Path

folder, claims = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())


def rows(name):
    return [json.loads(line) for line in (folder / f"{name}.jsonl").open()]


kinds = {entity["name"]: entity["kind"] for entity in rows("entities")}
names = {alias: entity["name"] for entity in rows("entities") for forms in entity["aliases"].values() for alias in forms}
values: dict[str, dict[str, str]] = {}
for value in rows("values"):
    for forms in value["forms"].values():
        for form in forms:
            values.setdefault(value["kind"], {})[form] = value["value"]
relations = {relation["name"]: relation for relation in rows("relations")}
facts = {(fact["subject"], fact["relation"], fact["object"]) for fact in rows("facts")}
months = "January February March April May June July August September October November December".split()


def read_object(kind, text):
    if kind == "year" and (match := re.fullmatch(r"(?:the year |anno )?(\d{4})", text)):
        return match[1]
    if kind == "date" and (date := re.fullmatch(r"(\d+) (\w+) (\d{4})|(\w+) (\d+),? (\d{4})", text)):
        day, month, year = (date[1], date[2], date[3]) if date[1] else (date[5], date[4], date[6])
        return f"{day} {month} {year}" if month in months else None
    return values.get(kind, {}).get(text)


def decide(claim):
    for template in rows_templates:
        pattern = re.escape(template["text"])
        for slot in ("s", "o", "o2"):
            pattern = pattern.replace(re.escape("{" + slot + "}"), f"(?P<{slot}>.+?)")
        match = re.fullmatch(pattern, claim)
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


rows_templates = rows("templates")
print(json.dumps([decide(claim) for claim in claims]))
