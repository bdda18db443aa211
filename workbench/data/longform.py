"""Convert records of long-form data sets to questions.

The questions have no short gold answers. `meta["reference"]` may have a long reference answer.
"""

from collections.abc import Iterator, Mapping

from workbench.data.record import passages, strings
from workbench.types import JsonMapping, Question

Record = JsonMapping


def factscore_bios(record: Record) -> Iterator[Question]:
    """Yield the question of one FActScore record: a request for a biography (arXiv 2305.14251).

    A record of FActScore's labelled files has the fields `topic` and `input`. A record from a text
    file has only a person's name, in `text`.
    """
    topic = str(record["topic"] if "topic" in record else record["text"]).strip()
    text = (
        str(record.get("input") or f"Tell me a bio of {topic}.").removeprefix("Question:").strip()
    )
    rarity, region = (*(record.get("cat") or ()), None, None)[:2]
    meta = {key: value for key, value in (("rarity", rarity), ("region", region)) if value}
    yield Question("", text, title=topic, kind="biography", meta=meta)


def longfact(record: Record) -> Iterator[Question]:
    """Yield the question of one LongFact record (arXiv 2403.18802).

    The questions are only for evaluation: the data set's canary string forbids training.
    """
    yield Question("", str(record["prompt"]).strip(), kind="long_form")


def eli5(record: Record) -> Iterator[Question]:
    """Yield the question of one ELI5 record (arXiv 1907.09190).

    The question is the post's title and text. The answer with the most votes becomes the reference
    answer.
    """
    answers = record["answers"]
    texts, scores = (
        (answers.get("text") or (), answers.get("score") or ())
        if isinstance(answers, Mapping)
        else ((), ())
    )
    best = max(zip(scores, texts, strict=True), key=lambda item: item[0])[1] if texts else None
    text = "\n\n".join(strings([record["title"], record.get("selftext")]))
    meta = {"reference": best} if best else {}
    yield Question(str(record.get("q_id") or ""), text, kind="long_form", meta=meta)


def webglm_qa(record: Record) -> Iterator[Question]:
    """Yield the question of one WebGLM-QA record (arXiv 2306.07906).

    The record's field `references` becomes the passages, its `answer` the reference answer.
    """
    yield Question(
        "",
        str(record["question"]).strip(),
        passages=passages(list(strings(record["references"]))),
        kind="long_form",
        meta={"reference": record["answer"]},
    )
