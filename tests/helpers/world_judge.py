"""The closed world behind an endpoint: a script of `JudgeServer` with the world's claims and
labels.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from benchmarks.scripted_judge import Script
from workbench.claims.world import world as world_claims
from workbench.judge import Element
from workbench.types import BY_PASSAGES, Claim, Claims, JsonObject, Passage, Question, Response
from workbench.verdicts.world import world_checklist, world_facts
from workbench.world.world import World

Found = Sequence[Element]


def world_script(world: World) -> Script:
    """Extract by the world's grammar, verify by the prompt's passages, compare checklists with the
    response. Repeated prompts are cached, so that only the server's delay takes time.
    """
    tasks: Mapping[str, Callable[[World, Found], Any]] = {
        "extract": _claims,
        "verify": _verdict,
        "checklist": _items,
    }

    @cache
    def reply(task: str, found: tuple[Element, ...]) -> str:
        return json.dumps(tasks[task](world, found))

    return lambda task, found: reply(task, tuple(found))


def _claims(world: World, found: Found) -> JsonObject:
    """The claims of each sentence, without unreadable claims and claims without a value, which are
    not verifiable.
    """
    text = _one(found, "response")
    response = Response("", Question("", _one(found, "question")), text)
    [read] = world_claims(world)([response])
    [checked] = world_facts(world)([(response, read)])
    empty = {
        verdict.target
        for verdict in (*read.verdicts, *checked.verdicts)
        if verdict.label == "vague"
    }
    said: dict[int, list[str]] = {}
    for claim in read.claims:
        if claim.sentence is not None and f"claim:{claim.id}" not in empty:
            said.setdefault(claim.sentence, []).append(claim.text)
    return {
        "sentences": [
            {"text": text[slice(*read.sentences[n])], "claims": claims}
            for n, claims in said.items()
        ]
    }


def _verdict(world: World, found: Found) -> JsonObject:
    materials = next(element for element in found if element.tag == "materials")
    passages = tuple(_passage(number, element) for number, element in enumerate(materials.children))
    asked = Question("", _one(found, "question"), passages=passages, meta={"evidence": BY_PASSAGES})
    claim = _one(found, "claim")
    [checked] = world_facts(world)(
        [(Response("", asked, claim), Claims(claims=(Claim(0, claim),)))]
    )
    return {"label": (checked.verdicts[0].label or "vague").removeprefix("hedged_")}


def _passage(number: int, element: Element) -> Passage:
    title = next((child.text for child in element.children), "")
    return Passage(str(number), title, element.text)


def _items(world: World, found: Found) -> JsonObject:
    items = tuple(element.text for element in found if element.tag == "item")
    asked = Question("", _one(found, "question"), checklist=items)
    [checked] = world_checklist(world)([(Response("", asked, _one(found, "response")), Claims())])
    return {"labels": [verdict.label or "missing" for verdict in checked.verdicts]}


def _one(found: Found, tag: str) -> str:
    return next(element.text for element in found if element.tag == tag)
