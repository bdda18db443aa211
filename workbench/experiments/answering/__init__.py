"""A question, passages that were found for it, and an answer that says of every sentence what it
rests on and how well.

answer("What is Dramem Torusin known for and how does it compare with Voku Kebas?")       # the
closed world's own pages answer("Who wrote Hamlet?", "Qwen/Qwen2.5-7B-Instruct", "wiki")
# an index, another policy
"""

from workbench.experiments.answering.ask import answer, answer_from
from workbench.experiments.answering.sources import Sources, closed_world, stored
from workbench.experiments.answering.support import Answer, Sentence

__all__ = ["Answer", "Sentence", "Sources", "answer", "answer_from", "closed_world", "stored"]
