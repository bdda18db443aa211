r"""How a response is read: its sections and sentences, its final answer, abstention, hedging and
answer matching.

TruthRL (arXiv 2509.25760, section 3 and table 9) asks for the answer in `\boxed{}`, for "I don't
know" when uncertain and for "invalid question" where the premise is false, and a language model
judges it. Its rule-based verifier (table 5) was exact string matching, which made the policy
abstain on nearly everything. The rules here are ours, and two principles decide doubtful cases:

* **Naming an answer is answering.** "I don't know. Paris" and "I'm not sure, but it is Paris"
  are answers, right or wrong like any other; only a text that commits to nothing abstains. An
  abstention is never a right answer, so a text that is wrongly taken for one earns what
  abstaining earns and no more.
* **Listing guesses is never right.** A rule cannot tell "Paris, France" from "Paris, Lyon", nor
  "He was born in Paris. He died in Lyon." from "His birthplace is Paris. He comes from Lyon.",
  so it refuses them all unless the whole is a gold answer: to pay for a list of candidates is to
  teach a policy to list candidates.

The second principle has limits: inside the sentence that states the answer, a name in another
role ("Dana, who comes from Lomar, was born in Vetra") is taken for what it usually is
(`workbench.answers.rivals` says how it is known and where that ends), and a name written small
is not seen in a statement beside it ("she comes from lomar. She was born in Vetra.").
"""

from __future__ import annotations

from workbench.answers.abstention import (
    ABSTENTIONS,
    INVALID,
    INVALID_QUESTION,
    is_abstention,
    is_invalid,
)
from workbench.answers.hedging import hedge, is_hedged
from workbench.answers.matching import DOUBT, MAX_WORDS, NO, YES, matches, probability
from workbench.answers.sections import (
    answer_sections,
    answer_text,
    final_answer,
    in_answer,
    section_at,
    sections,
    thinking,
    well_formed,
)
from workbench.answers.sentences import sentences
from workbench.answers.text import normalise

__all__ = [
    "ABSTENTIONS",
    "DOUBT",
    "INVALID",
    "INVALID_QUESTION",
    "MAX_WORDS",
    "NO",
    "YES",
    "answer_sections",
    "answer_text",
    "final_answer",
    "hedge",
    "in_answer",
    "is_abstention",
    "is_hedged",
    "is_invalid",
    "matches",
    "normalise",
    "probability",
    "section_at",
    "sections",
    "sentences",
    "thinking",
    "well_formed",
]
