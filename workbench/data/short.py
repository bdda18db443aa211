"""Readers of data sets with short answers; see `workbench.data.sets` for their common rules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from workbench.data.record import answered, passage, passages, strings
from workbench.text import INVALID_QUESTION
from workbench.types import JsonMapping, Passage, Question

Record = JsonMapping

_NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?")


def hotpotqa(record: Record) -> Iterator[Question]:
    """HotpotQA (arXiv 1809.09600): the authors' file (`_id`, context as pairs), the hub's copy
    (`id`, context as columns), or a file of questions, answers and types alone. The titles are
    those of the supporting facts."""
    facts = record.get("supporting_facts") or ()
    titles = facts["title"] if isinstance(facts, Mapping) else [fact[0] for fact in facts]
    yield answered(
        record["question"],
        strings(record["answer"]),
        identity=record.get("_id", record.get("id")),
        title=";".join(dict.fromkeys(titles)),
        shown=_context(record.get("context") or ()),
        meta={key: record.get(key) for key in ("type", "level")},
    )


def _context(context: Any) -> tuple[Passage, ...]:
    if isinstance(context, Mapping):
        context = zip(context["title"], context["sentences"], strict=True)
    return tuple(
        {
            p.id: p for p in (passage("".join(sentences), title) for title, sentences in context)
        }.values()
    )


def musique(record: Record) -> Iterator[Question]:
    """MuSiQue (arXiv 2108.00573). In its full version a contrast question lacks a supporting
    paragraph: `answerable`.
    """
    paragraphs = record["paragraphs"]
    supporting = [item["title"] for item in paragraphs if item.get("is_supporting")]
    yield answered(
        record["question"],
        (
            *strings(record["answer"]),
            *(a for a in strings(record.get("answer_aliases")) if a != record["answer"]),
        ),
        identity=record.get("id"),
        title=";".join(dict.fromkeys(supporting)),
        shown=passages(
            [{"title": item["title"], "text": item["paragraph_text"]} for item in paragraphs]
        ),
        answerable=record.get("answerable"),
        meta={"hops": len(record.get("question_decomposition") or ()) or None},
    )


def squad(record: Record) -> Iterator[Question]:
    """SQuAD 1.1, 2.0 (arXiv 1806.03822) and XQuAD (1910.11856): the authors' articles with their
    paragraphs, or the hub's copy with a row a question. Only 2.0 has questions that its
    paragraph does not answer."""
    if "paragraphs" not in record:
        yield _squad(record, record["context"], record.get("title") or "")
        return
    for paragraph in record["paragraphs"]:
        for item in paragraph["qas"]:
            yield _squad(item, paragraph["context"], record.get("title") or "")


def _squad(item: Record, context: str, title: str) -> Question:
    answers = item["answers"]
    texts = strings(
        answers if isinstance(answers, Mapping) else [answer["text"] for answer in answers]
    )
    title = title.replace("_", " ")
    shown, answerable = (passage(context, title),), bool(texts)
    return answered(
        item["question"],
        texts,
        identity=item.get("id"),
        title=title,
        shown=shown,
        answerable=answerable,
    )


def nq_open(record: Record) -> Iterator[Question]:
    """NQ-open (arXiv 1906.00300) and EfficientQA: `question` and the list `answer`."""
    yield answered(record["question"], strings(record["answer"]))


def webquestions(record: Record) -> Iterator[Question]:
    """WebQuestions (Berant et al. 2013): a list of `{qId, qText, answers}`, the hub's copy
    `{url, question, answers}`, or the first release `{utterance, targetValue}`, whose answers
    are written as (list (description …))."""
    if "utterance" in record:
        target = re.findall(r'\(description (?:"([^"]*)"|([^()"]+))\)', record["targetValue"])
        yield answered(record["utterance"], strings([quoted or bare for quoted, bare in target]))
    else:
        text = record["qText"] if "qText" in record else record["question"]
        yield answered(text, strings(record["answers"]), identity=record.get("qId"))


def crag(record: Record) -> Iterator[Question]:
    """CRAG (arXiv 2406.04744), tasks 1 and 2. The gold answer to a false premise is "invalid
    question"; a "set" question's answer is taken apart at commas and semicolons where it has no
    alternatives *(ours)*; pages are shown as snippets."""
    type_, answer = record.get("question_type"), str(record["answer"]).strip()
    alternatives = strings(record.get("alt_ans"))
    false_premise = type_ == "false_premise" or answer.lower() == INVALID_QUESTION
    items = tuple(part.strip() for part in re.split(r"[;,]\s+(?:and\s+)?", answer) if part.strip())
    listed = type_ == "set" and not alternatives and len(items) > 1
    forms = (INVALID_QUESTION,) if false_premise else items if listed else (answer, *alternatives)
    results = [r for r in record.get("search_results") or () if r.get("page_snippet")]
    yield answered(
        record["query"],
        strings(forms),
        identity=record.get("interaction_id"),
        shown=passages([{"title": r.get("page_name"), "text": r["page_snippet"]} for r in results]),
        kind="false_premise" if false_premise else "list" if listed else "single",
        meta={
            key: record.get(key)
            for key in ("domain", "question_type", "static_or_dynamic", "popularity", "query_time")
        },
    )


def simpleqa(record: Record) -> Iterator[Question]:
    """SimpleQA (arXiv 2411.04368): `metadata` is a Python or JSON object written as text;
    SimpleQA Verified has its fields as columns. A number is `numeric` where the gold answer is
    one and nothing else."""
    details = _details(record.get("metadata"))
    answer, type_ = (
        str(record["answer"]).strip(),
        record.get("answer_type", details.get("answer_type")),
    )
    numeric = type_ == "Number" and _NUMBER.fullmatch(answer)
    kind, topic = "numeric" if numeric else "single", record.get("topic", details.get("topic"))
    yield answered(
        record["problem"], strings([answer]), kind=kind, meta={"topic": topic, "answer_type": type_}
    )


def _details(value: Any) -> JsonMapping:
    import ast

    if not isinstance(value, str):
        return value or {}
    try:
        parsed = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        parsed = json.loads(value)
    return parsed if isinstance(parsed, Mapping) else {}


def chinese_simpleqa(record: Record) -> Iterator[Question]:
    """Chinese SimpleQA (arXiv 2411.07140)."""
    yield answered(
        record["question"],
        strings([record["answer"]]),
        identity=record.get("id"),
        meta={"topic": record.get("primary_category"), "lang": "zh"},
    )


def selfaware(record: Record) -> Iterator[Question]:
    """SelfAware (arXiv 2305.18153): answerable questions with answers, and questions that
    cannot be answered, without.
    """
    identity = record.get("question_id")
    yield answered(
        record["question"],
        strings(record["answer"]),
        identity=None if identity is None else f"selfaware-{identity}",
        answerable=_true(record["answerable"]),
        meta={"origin": record.get("source")},
    )


def _true(value: Any) -> bool:
    return value.strip().lower() in ("true", "1", "yes") if isinstance(value, str) else bool(value)


def truthfulqa(record: Record) -> Iterator[Question]:
    """TruthfulQA (arXiv 2109.07958), for generation: the best answer, then the other correct
    ones; the false ones in `meta`. In the authors' CSV lists are joined by "; "."""
    row = {key.lower().replace(" ", "_"): value for key, value in record.items()}

    def several(value: Any) -> tuple[str, ...]:
        return strings(value.split("; ") if isinstance(value, str) else value)

    answers = strings([*strings([row["best_answer"]]), *several(row["correct_answers"])])
    wrong = list(several(row.get("incorrect_answers"))) or None
    meta = {"incorrect_answers": wrong, **{key: row.get(key) for key in ("category", "type")}}
    yield answered(row["question"], answers, meta=meta)
