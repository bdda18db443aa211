"""Convert records of data sets with short answers to questions.

`workbench.data.sets` has the rules that all data sets share.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.data.printed import container
from workbench.data.record import passage, passages, short_question, strings
from workbench.text import INVALID_QUESTION
from workbench.types import JsonMapping, Passage, Question

Record = JsonMapping

# with separators of thousands, without a unit
_NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?")


def hotpotqa(record: Record) -> Iterator[Question]:
    """Yield the question of one HotpotQA record (arXiv 1809.09600).

    The titles of the supporting facts, joined by ";", become the question's title. Context and
    supporting facts may be missing.
    """
    facts = record.get("supporting_facts") or ()
    titles = facts["title"] if isinstance(facts, Mapping) else [fact[0] for fact in facts]
    yield short_question(
        record["question"],
        strings(record["answer"]),
        identity=record.get("_id", record.get("id")),
        title=";".join(dict.fromkeys(titles)),
        materials=_context(record.get("context") or ()),
        meta={key: record.get(key) for key in ("type", "level")},
    )


def _context(context: Any) -> tuple[Passage, ...]:
    if isinstance(context, Mapping):
        context = zip(context["title"], context["sentences"], strict=True)
    # by id, which drops repeated paragraphs
    return tuple(
        {
            p.id: p for p in (passage("".join(sentences), title) for title, sentences in context)
        }.values()
    )


def musique(record: Record) -> Iterator[Question]:
    """Yield the question of one MuSiQue record (arXiv 2108.00573).

    In the full version of the data set, some questions lack a supporting paragraph. For these
    questions, `meta["answerable"]` is False.
    """
    paragraphs = record["paragraphs"]
    supporting = [item["title"] for item in paragraphs if item.get("is_supporting")]
    yield short_question(
        record["question"],
        strings({"value": record["answer"], "aliases": record.get("answer_aliases")}),
        identity=record.get("id"),
        title=";".join(dict.fromkeys(supporting)),
        materials=passages(
            [{"title": item["title"], "text": item["paragraph_text"]} for item in paragraphs]
        ),
        answerable=record.get("answerable"),
        meta={"hops": len(record.get("question_decomposition") or ()) or None},
    )


def squad(record: Record) -> Iterator[Question]:
    """Yield the questions of one SQuAD 1.1, SQuAD 2.0 or XQuAD record.

    A record is an article with its paragraphs (the authors' file) or one question (the hub's copy).
    Only SQuAD 2.0 has questions that their paragraph does not answer. Sources: arXiv 1806.03822
    (SQuAD 2.0), 1910.11856 (XQuAD).
    """
    if "paragraphs" not in record:
        yield _squad(record, record["context"], record.get("title") or "")
        return
    for paragraph in record["paragraphs"]:
        for item in paragraph["qas"]:
            yield _squad(item, paragraph["context"], record.get("title") or "")


def _squad(item: Record, context: str, title: str) -> Question:
    texts, title = strings(item["answers"]), title.replace("_", " ")
    return short_question(
        item["question"],
        texts,
        identity=item.get("id"),
        title=title,
        materials=(passage(context, title),),
        answerable=bool(texts),
    )


def nq_open(record: Record) -> Iterator[Question]:
    """Yield the question of one record of NQ-open (arXiv 1906.00300) or EfficientQA."""
    yield short_question(record["question"], strings(record["answer"]))


def webquestions(record: Record) -> Iterator[Question]:
    """Yield the question of one WebQuestions record (Berant et al. 2013).

    The record has one of three sets of columns:

    * `qId, qText, answers`;
    * `url, question, answers`, in the hub's copy;
    * `utterance, targetValue`, in the first release.
    """
    if "utterance" in record:  # with answers such as '(list (description "…"))'
        target = re.findall(r'\(description (?:"([^"]*)"|([^()"]+))\)', record["targetValue"])
        yield short_question(
            record["utterance"], strings([quoted or bare for quoted, bare in target])
        )
    else:
        text = record["qText"] if "qText" in record else record["question"]
        yield short_question(text, strings(record["answers"]), identity=record.get("qId"))


def crag(record: Record) -> Iterator[Question]:
    """Yield the question of one CRAG record (arXiv 2406.04744), tasks 1 and 2.

    * If the question has a false premise, its gold answer is "invalid question".
    * If the question's type is "set", its answer becomes a list: "a; b" -> ["a", "b"]. An answer
      with alternatives is not split *(ours)*.
    * The snippets of the search results become the passages.
    """
    type_, answer = record.get("question_type"), str(record["answer"]).strip()
    alternatives = strings(record.get("alt_ans"))
    false_premise = type_ == "false_premise" or answer.lower() == INVALID_QUESTION
    items = tuple(part.strip() for part in re.split(r"[;,]\s+(?:and\s+)?", answer) if part.strip())
    listed = type_ == "set" and not alternatives and len(items) > 1
    forms = (INVALID_QUESTION,) if false_premise else items if listed else (answer, *alternatives)
    snippets = [
        {"title": result.get("page_name"), "text": result["page_snippet"]}
        for result in record.get("search_results") or ()
        if result.get("page_snippet")
    ]
    yield short_question(
        record["query"],
        strings(forms),
        identity=record.get("interaction_id"),
        materials=passages(snippets),
        kind="false_premise" if false_premise else "list" if listed else "",
        meta={
            key: record.get(key)
            for key in ("domain", "question_type", "static_or_dynamic", "popularity", "query_time")
        },
    )


def simpleqa(record: Record) -> Iterator[Question]:
    """Yield the question of one record of SimpleQA (arXiv 2411.04368) or SimpleQA Verified.

    The kind is "numeric" if the gold answer is only a number.
    """
    # an object written as text; SimpleQA Verified has its fields as columns
    details = container(record.get("metadata")) or {}
    answer, type_ = (
        str(record["answer"]).strip(),
        record.get("answer_type", details.get("answer_type")),
    )
    numeric = type_ == "Number" and _NUMBER.fullmatch(answer)
    kind, topic = "numeric" if numeric else "", record.get("topic", details.get("topic"))
    yield short_question(
        record["problem"], strings([answer]), kind=kind, meta={"topic": topic, "answer_type": type_}
    )


def chinese_simpleqa(record: Record) -> Iterator[Question]:
    """Yield the question of one Chinese SimpleQA record (arXiv 2411.07140)."""
    yield short_question(
        record["question"],
        strings([record["answer"]]),
        identity=record.get("id"),
        meta={"topic": record.get("primary_category"), "lang": "zh"},
    )


def selfaware(record: Record) -> Iterator[Question]:
    """Yield the question of one SelfAware record (arXiv 2305.18153).

    `meta["answerable"]` is False if the question has no answer, else True.
    """
    identity = record.get("question_id")
    yield short_question(
        record["question"],
        strings(record["answer"]),
        identity=None if identity is None else f"selfaware-{identity}",
        answerable=_true(record["answerable"]),
        meta={"origin": record.get("source")},
    )


def _true(value: object) -> bool:
    return value.strip().lower() in ("true", "1", "yes") if isinstance(value, str) else bool(value)


def truthfulqa(record: Record) -> Iterator[Question]:
    """Yield the question of one record of TruthfulQA's generation task (arXiv 2109.07958).

    The gold answers are the best answer, followed by the other correct answers. The incorrect
    answers are in `meta["incorrect_answers"]`.
    """
    row = {key.lower().replace(" ", "_"): value for key, value in record.items()}

    def several(value: object) -> tuple[str, ...]:
        # the authors' CSV file writes a list as "a; b"
        return strings(value.split("; ") if isinstance(value, str) else value)

    answers = strings([*strings([row["best_answer"]]), *several(row["correct_answers"])])
    wrong = list(several(row.get("incorrect_answers"))) or None
    meta = {"incorrect_answers": wrong, **{key: row.get(key) for key in ("category", "type")}}
    yield short_question(row["question"], answers, meta=meta)
