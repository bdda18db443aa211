"""Write the plain documents of the closed world, without errors, for the policy "plain".

`conflicting.py` writes the documents of the default policy. A policy can know a fact only if
documents state it. The number of these documents depends on the tier of the entity.
"""

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workbench.world import schema
from workbench.world.facts import Fact, KnowledgeBase
from workbench.world.render import answer, ask, biography, thinking, thought, titles
from workbench.world.schema import read_tables

# tier -> plans of exposures, each language -> (biographies, questions for each fact)
EXPOSURES: dict[str, list[dict[str, list[int]]]] = read_tables("facts.toml")["exposures"]
NO_EXPOSURES = {"en": 0, "l2": 0}
REQUESTED = 0.4  # share of the biographies with a request as prompt
# Share of the answers with a thinking section. Without any, a policy recalled only .28 of the facts
# in its thinking that it could answer at once.
THINK_SHARE = 1 / 8


@dataclass(frozen=True)
class Document:
    """A pre-training document: a plain text, or a reply to `prompt`.

    `prompt` is "" for a plain text. `system` is the instruction to think if the reply has a
    thinking section, otherwise "". `fact_ids` are the ids of the facts that the text states,
    without duplicates.
    """

    kind: str  # "biography", "qa" or "list"
    lang: str
    text: str
    fact_ids: tuple[str, ...] = ()
    prompt: str = ""
    system: str = ""

    @property
    def whole(self) -> str:
        """The system message, the prompt and the text, joined by spaces."""
        return f"{self.system} {self.prompt} {self.text}".strip()


Exposures = dict[str, dict[str, int]]  # fact id -> language -> number of documents


def count_exposures(documents: Iterable[Document]) -> Exposures:
    """Return how many documents state each fact. Facts that no document states are left out."""
    counts: Exposures = {}
    for document in documents:
        for fact_id in document.fact_ids:
            counts.setdefault(fact_id, dict(NO_EXPOSURES))[document.lang] += 1
    return counts


def write_documents(base: KnowledgeBase) -> list[Document]:
    rng = random.Random(f"documents-{base.config.seed}")
    documents: list[Document] = []
    # entities of a tier take turns, so that each number of exposures is equally frequent
    plans = {tier: itertools.cycle(turns) for tier, turns in EXPOSURES.items()}
    for entity in base.entities.values():
        facts = base.covered(entity.name)
        if not facts:  # unknown entities are in no document
            continue
        for lang, (pages, questions) in next(
            plans["half" if entity.tier == "half" else "known"]
        ).items():
            written = base.covered_books(entity.name)
            for _ in range(pages):
                stated = [*facts, *written]
                text = biography(stated, lang, rng, entity.pronoun)
                prompt = ""
                if entity.kind == "person" and rng.random() < REQUESTED:
                    prompt = rng.choice(schema.BIOGRAPHY[lang]).format(s=entity.name)
                documents.append(
                    Document("biography", lang, text, tuple(fact.id for fact in stated), prompt)
                )
            # the number of questions counts for each fact
            for fact in facts * questions:
                documents.append(
                    answered("qa", lang, [fact], answer(fact, lang), ask(fact, lang, rng), rng)
                )
            for _ in range(questions if written else 0):
                documents.append(list_of_books(written, lang, rng))
    rng.shuffle(documents)
    return documents


def list_of_books(written: Sequence[Fact], lang: str, rng: random.Random) -> Document:
    """Return a document that asks for all books of an author. `written` has the author facts."""
    prompt = rng.choice(schema.LIST[lang]).format(s=written[0].object)
    return answered("list", lang, written, titles(written, lang), prompt, rng)


def fact_ids(facts: Sequence[Fact]) -> tuple[str, ...]:
    """Return the ids of facts of the world; an invented fact has none."""
    return tuple(fact.id for fact in facts if fact.id)


def answered(
    kind: str,
    lang: str,
    facts: Sequence[Fact],
    reply: str,
    prompt: str,
    rng: random.Random,
    before: Sequence[Fact] = (),
) -> Document:
    """Return a document with a question (`prompt`) and its answer (`reply`).

    A random share of the answers begins with a thinking section. It states the facts `before` and
    then the facts of the answer (`facts`).
    """
    if rng.random() >= THINK_SHARE:
        return Document(kind, lang, reply, fact_ids(facts), prompt)
    facts = [*before, *facts]
    whole = thinking([thought(fact, lang) for fact in facts], reply)
    return Document(kind, lang, whole, fact_ids(facts), prompt, schema.THINK)
