"""Answer a question from retrieved passages; each sentence gets its sources and a verdict.

# from the closed world's pages
answer("What is Fipon Stopunos known for and how does it compare with Trobi Dupo?")
# from an index, by another policy
answer("Who wrote Hamlet?", "Qwen/Qwen2.5-7B-Instruct", "wiki")
"""

from workbench.experiments.answering.ask import answer, answer_from
from workbench.experiments.answering.sources import Sources, closed_world, stored
from workbench.experiments.answering.support import Answer

__all__ = ["Answer", "Sources", "answer", "answer_from", "closed_world", "stored"]
