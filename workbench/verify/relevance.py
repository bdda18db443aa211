"""Which claims about the closed world are of no use to somebody who asks a question: 1 of 5 on
the scale of informativeness (RLFH, arXiv 2406.12221, section 3.1.3: repeated or useless)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from workbench.types import Question
from workbench.world.facts import Fact
from workbench.world.parser import Parsed


@dataclass(frozen=True)
class Subject:
    """What a question is about: `entities` by name, and `named`, those of them that it names
    itself.

    `bridges` are what the question follows on its way to another entity: Ada and "employer" in
    "In which city is the employer of Ada based?".
    """

    entities: frozenset[str]
    named: frozenset[str]
    bridges: frozenset[tuple[str, str]]  # subject, relation


def subject_of(question: Question, named: Collection[str], facts: Mapping[str, Fact]) -> Subject:
    """The entities that a question names, and those that the facts of its answer are about."""
    known = [facts[name] for name in question.meta.get("fact_ids") or () if name in facts]
    subjects = {fact.subject for fact in known}
    bridges = frozenset((fact.subject, fact.relation) for fact in known if fact.object in subjects)
    return Subject(frozenset({*named, *subjects}), frozenset(named), bridges)


class Told:
    """What a response has said so far, section by section; `useless` is to be asked of each
    claim in order.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject, self.reached = subject, set(subject.entities)
        self.said: set[tuple[str, str, str, str | None]] = set()

    def useless(self, section: str, stated: Sequence[Parsed]) -> str | None:
        """Why a claim with these facts is of no use, as a label of the aspect "subject": it is
        about nothing that is asked about ("other"), or repeats what its section says already
        ("asked"). None where it is of use.

        A vague claim repeats any claim on the same relation. Whether a claim is true does not
        matter: who names the wrong employer, and says where that one is based, speaks of what
        was asked. Where it is not known what a question is about, nothing is beside it.
        """
        facts = {(section, parsed.subject, parsed.relation, parsed.object) for parsed in stated}
        repeats = facts <= self.said
        self.said |= facts | {(*fact[:3], None) for fact in facts}
        self.reached |= {
            p.object for p in stated if p.object and (p.subject, p.relation) in self.subject.bridges
        }
        if self.reached and not any(map(self._is_asked, stated)):
            return "other"
        return "asked" if repeats else None

    def _is_asked(self, parsed: Parsed) -> bool:
        """What somebody wrote is about that person too, though the fact is one of the book."""
        return parsed.subject in self.reached or parsed.object in self.subject.named
