"""Write facts as text in both languages: sentences, biographies, answers, thinking sections."""

import random
from collections.abc import Callable, Sequence

from workbench.world import schema
from workbench.world.facts import Fact


def state(
    fact: Fact, lang: str, rng: random.Random, subject: str | None = None, stance: str = "asserted"
) -> str:
    """Return one sentence that states a fact, in a random wording.

    Args:
        fact: the fact.
        lang: "en", or "l2" for the invented second language.
        rng: draws the wording.
        subject: text that replaces the subject's name at the start of the sentence, such as a
            pronoun.
        stance: "asserted", "hedged" or "vague"; a vague sentence does not name the object.
    """
    relation = schema.RELATIONS[fact.relation]
    text = rng.choice(getattr(relation, schema.STANCES[stance])[lang])
    # a pronoun is only correct at the start: not in "The employer of {s} is …"
    name = subject if subject and text.startswith("{s}") else fact.subject
    return text.format(s=name, o=fact.forms[lang][0])


def biography(
    facts: Sequence[Fact],
    lang: str,
    rng: random.Random,
    pronoun: str,
    hedged: float | Callable[[Fact], float] = 0.0,
    vague: float = 0.0,
) -> str:
    """Return a text in which each of the facts is mentioned once.

    Some sentences combine two facts. Later sentences may use the pronoun instead of the name.

    Args:
        facts: the facts of one person or other entity.
        lang: "en", or "l2" for the invented second language.
        rng: draws the order and the wordings.
        pronoun: English pronoun of the entity, such as "She".
        hedged, vague: probability that a sentence about a single fact is hedged or vague. All other
            sentences assert their facts. `hedged` may be a function of the fact.
    """
    by = {fact.relation: fact for fact in facts}
    units: list[tuple[Fact, ...]] = []
    compounds = [
        t
        for t in schema.COMPOUNDS
        if t.lang == lang and all(relation in by for relation in t.relations)
    ]
    joined = {t.relations for t in compounds if rng.random() < 0.4}
    for relations in sorted(joined):  # the order of a set differs between processes
        units.append(tuple(by.pop(relation) for relation in relations))
    units += [(fact,) for fact in facts if fact.relation in by]
    order = {relation: rank for rank, relation in enumerate(schema.RELATIONS)}
    units.sort(key=lambda unit: order[unit[0].relation])
    if rng.random() < 0.5:  # half of the texts have the usual order
        rng.shuffle(units)
    pronoun = pronoun if lang == "en" else schema.PRONOUNS["l2"][0]
    sentences = []
    for place, unit in enumerate(units):
        subject = pronoun if place and rng.random() < 0.5 else unit[0].subject
        if len(unit) == 2:
            form = rng.choice(
                [t.text for t in compounds if t.relations == tuple(fact.relation for fact in unit)]
            )
            sentences.append(
                form.format(s=subject, o=unit[0].forms[lang][0], o2=unit[1].forms[lang][0])
            )
        else:
            draw = rng.random()
            share = hedged(unit[0]) if callable(hedged) else hedged
            stance = "hedged" if draw < share else "vague" if draw < share + vague else "asserted"
            # the subject of an author fact is the book
            name = None if unit[0].relation == "author" else subject
            sentences.append(state(unit[0], lang, rng, name, stance))
    return " ".join(sentences)


def ask(fact: Fact, lang: str, rng: random.Random) -> str:
    return rng.choice(schema.RELATIONS[fact.relation].asks[lang]).format(s=fact.subject)


def answer(fact: Fact, lang: str) -> str:
    return f"{fact.forms[lang][0]}."


def titles(books: Sequence[Fact], lang: str) -> str:
    """Return the titles of books as the answer to a list question, such as "A and B.".

    Args:
        books: author facts; the subject of each fact is the title of a book.
    """
    return f"{(' e ' if lang == 'l2' else ' and ').join(book.subject for book in books)}."


def thought(fact: Fact, lang: str) -> str:
    """Return a sentence that states a fact, in a fixed wording, for a thinking section."""
    return (
        schema.RELATIONS[fact.relation]
        .states[lang][0]
        .format(s=fact.subject, o=fact.forms[lang][0])
    )


def thinking(thoughts: Sequence[str], reply: str, boxed: bool = False) -> str:
    """Return a `<think>` section with the thoughts, followed by the reply.

    The reply is in an `<answer>` tag or, if `boxed` is True, in a box as in LaTeX.
    """
    closing = f"\\boxed{{ {reply}}}" if boxed else f"<answer> {reply}</answer>"
    return f"<think> {' '.join(thoughts)}</think>{closing}"
