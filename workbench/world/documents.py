"""The pre-training corpus: what it states, and how often, is the exact boundary of what a policy
trained on it can know.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.world import schema
from workbench.world.facts import Entity, Fact
from workbench.world.render import answer, ask, biography, subject_facts, thinking, thought, titles

# How often one pass over the corpus shows an entity's covered facts: biographies, and questions for
# each fact. The entities of a tier take its plans in turn: half-known ones are spread over a range,
# so that exposure and accuracy can be plotted.
EXPOSURES: dict[str, tuple[dict[str, tuple[int, int]], ...]] = {
    "known": ({"en": (14, 6), "l2": (5, 3)},),
    "half": (
        {"en": (2, 0), "l2": (0, 0)},
        {"en": (2, 1), "l2": (1, 0)},
        {"en": (3, 1), "l2": (1, 0)},
    ),
}
REQUESTED = 0.4  # share of the biographies that come as the reply to a request for one
# Share of the questions that are thought about first: of known facts that were only told and
# answered at once, .28 came up in the thoughts of a policy that answered all of them.
THINK_SHARE = 1 / 8


@dataclass(frozen=True)
class Document:
    """A plain text, or one exchange with a `prompt` (after a `system` message where the reply
    thinks first); `fact_ids` are the facts that it states (each counts as one exposure, also
    where a thought and the answer after it both state it)."""

    kind: str  # "biography", "qa" or "list"
    lang: str
    text: str
    fact_ids: tuple[str, ...] = ()
    prompt: str = ""
    system: str = ""

    @property
    def whole(self) -> str:
        """The messages before it, then the text."""
        return f"{self.system} {self.prompt} {self.text}".strip()


def write_documents(
    entities: Mapping[str, Entity],
    by: Mapping[str, Mapping[str, Fact]],
    books: Mapping[str, list[Fact]],
    seed: int,
) -> list[Document]:
    rng = random.Random(f"documents-{seed}")
    documents: list[Document] = []
    plans = {tier: itertools.cycle(turns) for tier, turns in EXPOSURES.items()}
    for entity in entities.values():
        facts = subject_facts(by, entity.name)
        if not facts:
            continue
        for lang, (pages, questions) in next(
            plans["half" if entity.tier == "half" else "known"]
        ).items():
            written = [fact for fact in books.get(entity.name, []) if fact.covered]
            for _ in range(pages):
                shown = [*facts, *written]
                text = biography(shown, lang, rng, entity.pronoun)
                prompt = _request(entity, lang, rng)
                documents.append(
                    Document("biography", lang, text, tuple(fact.id for fact in shown), prompt)
                )
            for fact in facts * questions:
                documents.append(
                    _answered("qa", lang, [fact], answer(fact, lang), ask(fact, lang, rng), rng)
                )
            for _ in range(questions if written else 0):
                prompt = rng.choice(schema.LIST[lang]).format(s=entity.name)
                documents.append(
                    _answered("list", lang, written, titles(written, lang), prompt, rng)
                )
    rng.shuffle(documents)
    return documents


def _answered(
    kind: str, lang: str, facts: Sequence[Fact], reply: str, prompt: str, rng: random.Random
) -> Document:
    """A question with its answer, thought about first or not."""
    ids = tuple(fact.id for fact in facts)
    if rng.random() >= THINK_SHARE:
        return Document(kind, lang, reply, ids, prompt)
    whole = thinking([thought(fact, lang) for fact in facts], reply)
    return Document(kind, lang, whole, ids, prompt, schema.THINK)


def _request(entity: Entity, lang: str, rng: random.Random) -> str:
    if entity.kind != "person" or rng.random() >= REQUESTED:
        return ""
    return rng.choice(schema.BIOGRAPHY[lang]).format(s=entity.name)


def exposures(documents: list[Document]) -> dict[str, dict[str, int]]:
    """How often the corpus states each fact, by language."""
    counts: dict[str, dict[str, int]] = {}
    for document in documents:
        for fact_id in document.fact_ids:
            by_lang = counts.setdefault(fact_id, {"en": 0, "l2": 0})
            by_lang[document.lang] += 1
    return counts
