r"""Rules that read a response: its sections, sentences, final answer, abstention and hedging.

They also decide whether the final answer matches the gold answers. TruthRL (arXiv 2509.25760,
section 3 and table 9) prompts for the answer in `\boxed{}`, for "I don't know" when uncertain, and
for "invalid question" if the premise is false. In the paper, a language model judges the answer.
With exact string matching instead (table 5), the policy learns to abstain on nearly all questions.

The rules here are ours. Two principles decide doubtful cases:

* **Naming an answer is answering.** "I don't know. Paris" and "I'm not sure, but it is Paris" are
  answers. An abstention is never right.
* **A list of guesses is worth no more than its first item.** The first sentence that names a gold
  answer must state it, and no other candidate may come before it. An answer that the rules
  recognise as a list of guesses is wrong.

Known limits:

* "Vetra lies in Lomar" is accepted as the answer Vetra and as the answer Lomar.
* A sentence about another relation of the same subject ("She died in Vetra" for "Where did she
  live?") counts as an answer, unless it uses the opposite of the question's verb.
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
