r"""Sections and sentences of a response, its final answer, abstention, hedging and answer matching.

TruthRL (arXiv 2509.25760, section 3 and table 9) prompts for the answer in `\boxed{}`, for "I don't
know" when uncertain, and for "invalid question" if the premise is false. A language model judges
the answer. The paper also tries exact string matching (table 5); a policy trained with it abstains
on nearly all questions. The rules here are ours. Two principles decide doubtful cases:

* **Naming an answer is answering.** "I don't know. Paris" and "I'm not sure, but it is Paris"
  are answers. An abstention is never right.
* **A list of guesses is worth no more than its first item.** The first sentence that names a gold
  answer must state it, and no other candidate may come before it. An answer that the rules
  recognise as a list of guesses is wrong.

Known limits: "Vetra lies in Lomar" is accepted as the answer Vetra and as the answer Lomar. A
sentence about another relation of the same subject ("She died in Vetra" for "Where did she live?")
counts as an answer unless it uses the opposite of the question's verb.
"""

from workbench.text.abstention import (
    INVALID_QUESTION,
    is_abstention,
    is_invalid,
)
from workbench.text.matching import DOUBT, matches, probability, retracted
from workbench.text.normal_form import normalise
from workbench.text.sections import (
    answer_sections,
    answer_text,
    final_answer,
    in_answer,
    section_at,
    sections,
    thinking,
    well_formed,
)
from workbench.text.sentences import sentences

__all__ = [
    "DOUBT",
    "INVALID_QUESTION",
    "answer_sections",
    "answer_text",
    "final_answer",
    "in_answer",
    "is_abstention",
    "is_invalid",
    "matches",
    "normalise",
    "probability",
    "retracted",
    "section_at",
    "sections",
    "sentences",
    "thinking",
    "well_formed",
]
