"""Every data set's reader on records of its schema, written here, and on slices of the real
files where there are any.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from workbench.answers import matches
from workbench.data import NAMES, load
from workbench.data.sets import SETS
from workbench.types import Question, WorkbenchError

PARAGRAPH = {"idx": 0, "title": "Ada", "paragraph_text": "Ada wrote notes.", "is_supporting": True}
ARTICLE = {
    "title": "Ada_Lovelace",
    "paragraphs": [
        {
            "context": "Ada was born in London.",
            "qas": [
                {
                    "id": "1",
                    "question": "Where?",
                    "answers": [{"text": "London", "answer_start": 16}],
                    "is_impossible": False,
                },
                {"id": "2", "question": "When did she fly?", "answers": [], "is_impossible": True},
            ],
        }
    ],
}
HUB_CONTEXT = {"title": ["Emma", "Ada"], "sentences": [["One.", " Two."], ["Three."]]}

# One record of each original schema (a name may have several), and what its first question should
# hold.
RECORDS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "hotpotqa",
        {
            "_id": "x",
            "question": "Both?",
            "answer": "yes",
            "type": "comparison",
            "level": "hard",
            "supporting_facts": [["Emma", 0], ["Ada", 0], ["Emma", 1]],
            "context": [["Emma", ["One.", " Two."]], ["Ada", ["Three."]]],
        },
        {
            "id": "x",
            "answers": ("yes",),
            "kind": "yes_no",
            "title": "Emma;Ada",
            "passages": ["One. Two.", "Three."],
        },
    ),
    (
        "hotpotqa",
        {
            "id": "x",
            "question": "Who?",
            "answer": "Jane",
            "type": "bridge",
            "level": "easy",
            "supporting_facts": {"title": ["Emma"], "sent_id": [0]},
            "context": HUB_CONTEXT,
        },
        {
            "id": "x",
            "answers": ("Jane",),
            "kind": "single",
            "title": "Emma",
            "passages": ["One. Two.", "Three."],
        },
    ),
    (
        "hotpotqa",
        {"question": "Who?", "answer": "Jane", "type": "bridge"},
        {"answers": ("Jane",), "passages": []},
    ),
    (
        "musique",
        {
            "id": "2hop__1_2",
            "question": "Who?",
            "answer": "Ada",
            "answer_aliases": ["Ada L.", "Ada"],
            "answerable": True,
            "paragraphs": [PARAGRAPH],
            "question_decomposition": [{"id": 1}, {"id": 2}],
        },
        {
            "id": "2hop__1_2",
            "answers": ("Ada", "Ada L."),
            "title": "Ada",
            "passages": ["Ada wrote notes."],
            "meta": {"answerable": True, "hops": 2},
        },
    ),
    (
        "musique",
        {
            "id": "y",
            "question": "Who?",
            "answer": "Ada",
            "answer_aliases": [],
            "answerable": False,
            "paragraphs": [PARAGRAPH],
            "question_decomposition": [],
        },
        {"answers": (), "kind": "unanswerable", "meta": {"answerable": False}},
    ),
    (
        "squad_v2",
        ARTICLE,
        {
            "id": "1",
            "answers": ("London",),
            "title": "Ada Lovelace",
            "passages": ["Ada was born in London."],
            "meta": {"answerable": True},
        },
    ),
    (
        "squad_v2",
        {
            "id": "2",
            "title": "Ada",
            "context": "Ada.",
            "question": "When?",
            "answers": {"text": [], "answer_start": []},
        },
        {"id": "2", "answers": (), "kind": "unanswerable", "meta": {"answerable": False}},
    ),
    ("xquad", ARTICLE, {"id": "1", "answers": ("London",)}),
    (
        "nq_open",
        {"question": "who was first", "answer": ["Ada", "Babbage"]},
        {"answers": ("Ada", "Babbage"), "kind": "single"},
    ),
    (
        "webquestions",
        {"qId": "wqs1", "answers": ["Ada"], "qText": "who?"},
        {"id": "wqs1", "text": "who?", "answers": ("Ada",)},
    ),
    (
        "webquestions",
        {"url": "http://x", "question": "who?", "answers": ["Ada", "Bo"]},
        {"id": "", "answers": ("Ada", "Bo")},
    ),
    (
        "webquestions",
        {
            "utterance": "who?",
            "targetValue": '(list (description "Ada Lovelace") (description Bo))',
            "url": "http://x",
        },
        {"text": "who?", "answers": ("Ada Lovelace", "Bo")},
    ),
    (
        "crag",
        {
            "interaction_id": "i",
            "query": "who?",
            "answer": "Ada",
            "alt_ans": ["Lovelace"],
            "question_type": "simple",
            "domain": "open",
            "search_results": [{"page_name": "P", "page_snippet": "S", "page_result": "<html>"}],
        },
        {
            "id": "i",
            "answers": ("Ada", "Lovelace"),
            "kind": "single",
            "passages": ["S"],
            "meta": {"question_type": "simple", "domain": "open"},
        },
    ),
    (
        "crag",
        {
            "interaction_id": "i",
            "query": "when did it?",
            "answer": "invalid question",
            "question_type": "false_premise",
        },
        {"answers": ("invalid question",), "kind": "false_premise"},
    ),
    (
        "crag",
        {
            "interaction_id": "i",
            "query": "which?",
            "answer": "Ada, Bo, and Cy",
            "alt_ans": [],
            "question_type": "set",
        },
        {"answers": ("Ada", "Bo", "Cy"), "kind": "list"},
    ),
    (
        "simpleqa",
        {
            "metadata": "{'topic': 'Art', 'answer_type': 'Number', 'urls': []}",
            "problem": "how many?",
            "answer": "1,234",
        },
        {
            "text": "how many?",
            "answers": ("1,234",),
            "kind": "numeric",
            "meta": {"topic": "Art", "answer_type": "Number"},
        },
    ),
    (
        "simpleqa",
        {"problem": "how far?", "answer": "120,000 euros", "topic": "Art", "answer_type": "Number"},
        {"answers": ("120,000 euros",), "kind": "single", "meta": {"topic": "Art"}},
    ),
    (
        "chinese_simpleqa",
        {
            "id": "c",
            "primary_category": "中华文化",
            "secondary_category": "中医",
            "question": "谁？",
            "answer": "关羽",
            "urls": [],
        },
        {"id": "c", "answers": ("关羽",), "meta": {"topic": "中华文化", "lang": "zh"}},
    ),
    (
        "selfaware",
        {
            "question_id": 4,
            "question": "Who?",
            "answer": ["Ada"],
            "answerable": True,
            "source": "squad",
        },
        {"id": "selfaware-4", "answers": ("Ada",), "meta": {"answerable": True, "origin": "squad"}},
    ),
    (
        "selfaware",
        {
            "question_id": 5,
            "question": "Why?",
            "answer": None,
            "answerable": False,
            "source": "SelfAware",
        },
        {"answers": (), "kind": "unanswerable", "meta": {"answerable": False}},
    ),
    (
        "truthfulqa",
        {
            "type": "Adversarial",
            "category": "Myths",
            "question": "What if?",
            "best_answer": "Nothing happens",
            "correct_answers": ["It does nothing", "Nothing happens"],
            "incorrect_answers": ["You die"],
            "source": "x",
        },
        {
            "answers": ("Nothing happens", "It does nothing"),
            "meta": {"category": "Myths", "incorrect_answers": ["You die"]},
        },
    ),
    (
        "truthfulqa",
        {
            "Type": "Adversarial",
            "Category": "Myths",
            "Question": "What if?",
            "Best Answer": "Nothing",
            "Correct Answers": "Nothing; It passes",
            "Incorrect Answers": "You die; You fly",
            "Source": "x",
        },
        {
            "answers": ("Nothing", "It passes"),
            "meta": {"incorrect_answers": ["You die", "You fly"]},
        },
    ),
    (
        "knowrl",
        {"question": "When?", "answers": "1992", "title": "NHL;Ice"},
        {"answers": ("1992",), "title": "NHL;Ice"},
    ),
    (
        "factscore_bios",
        {
            "input": "Question: Tell me a bio of Ada.",
            "output": "Ada …",
            "topic": "Ada",
            "cat": ["rare", "Europe"],
            "annotations": None,
        },
        {
            "text": "Tell me a bio of Ada.",
            "title": "Ada",
            "kind": "biography",
            "meta": {"rarity": "rare", "region": "Europe"},
        },
    ),
    (
        "longfact",
        {"prompt": "What is glass?", "canary": "BENCHMARK DATA"},
        {"text": "What is glass?", "kind": "long_form", "meta": {"evaluation_only": True}},
    ),
    (
        "eli5",
        {
            "q_id": "e",
            "title": "Why?",
            "selftext": "I wonder.",
            "answers": {"a_id": ["1", "2"], "text": ["No.", "Yes."], "score": [1, 9]},
        },
        {
            "id": "e",
            "text": "Why?\n\nI wonder.",
            "answers": (),
            "kind": "long_form",
            "meta": {"reference": "Yes."},
        },
    ),
    (
        "webglm_qa",
        {"question": "Why?", "answer": "So [1].", "references": ["First.", "Second."]},
        {"passages": ["First.", "Second."], "answers": (), "meta": {"reference": "So [1]."}},
    ),
]


def check(question: Question, expected: dict[str, Any]) -> None:
    for field, value in expected.items():
        if field == "passages":
            assert [passage.text for passage in question.passages] == value
        elif field == "meta":
            assert {key: question.meta.get(key) for key in value} == value
        elif field != "id" or value:
            assert getattr(question, field) == value


@pytest.mark.parametrize(("name", "record", "expected"), RECORDS)
def test_a_record_of_each_schema(
    name: str, record: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "file.jsonl").write_text(json.dumps(record) + "\n")
    question = load(tmp_path / "file.jsonl", schema=name)[0]
    check(question, expected)
    assert question.meta["source"] == name and question.id
    if question.kind in ("yes_no", "numeric", "false_premise", "single") and question.answers:
        assert matches(question.answers[0], question.answers, question.kind, question.text)


def test_every_data_set_is_tested_here() -> None:
    assert {name for name, _, _ in RECORDS} == set(NAMES)


@pytest.mark.parametrize(
    ("name", "record", "expected"),
    [r for r in RECORDS if any(set(o) <= set(r[1]) for o in SETS[r[0]].own)],
)
def test_a_schema_of_its_own_is_recognised(
    name: str, record: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "file.json").write_text(json.dumps([record]))
    question = load(tmp_path / "file.json")[0]
    check(question, expected)
    assert question.meta["source"] == name


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_schema_names_columns(name: str, tmp_path: Path) -> None:
    (tmp_path / "file.jsonl").write_text('{"claim": "x", "label": 1}\n')
    with pytest.raises(WorkbenchError, match="found claim, label") as error:
        load(tmp_path / "file.jsonl", schema=name)
    assert all(column in str(error.value) for column in SETS[name].columns[0])


SLICES = [
    ("hotpotqa", "hotpotqa/hotpot_dev_distractor_v1.json", 27, {"yes_no", "single"}, True),
    ("hotpotqa", "hotpotqa/hotpot_dev_v1_simplified.json", 300, {"yes_no", "single"}, False),
    ("nq_open", "nq_open/NQ-open.dev.jsonl", 300, {"single"}, False),
    ("nq_open", "nq_open/NQ-open.efficientqa.test.1.1.jsonl", 200, {"single", "yes_no"}, False),
    ("webquestions", "webquestions/test.json", 300, {"single"}, True),
    ("selfaware", "selfaware/SelfAware.json", 300, {"single", "yes_no", "unanswerable"}, True),
    ("chinese_simpleqa", "chinese_simpleqa/chinese_simpleqa.jsonl", 300, {"single"}, True),
    ("knowrl", "knowrl/knowrl_RLdata.json", 300, {"single"}, False),
    ("xquad", "xquad/xquad.en.json", 366, {"single"}, False),
    ("xquad", "xquad/xquad.zh.json", 366, {"single"}, False),
    ("factscore_bios", "factscore_human/ChatGPT.jsonl", 37, {"biography"}, True),
    ("longfact", "longfact", 240, {"long_form"}, True),
]


@pytest.mark.parametrize(("name", "file", "n", "kinds", "recognised"), SLICES)
def test_real_files(
    name: str, file: str, n: int, kinds: set[str], recognised: bool, slices: Path
) -> None:
    questions = load(slices / file, schema=name)
    assert len(questions) == n and {q.kind for q in questions} <= kinds
    assert len({q.id for q in questions}) == n and all(q.text for q in questions)
    for question in questions:
        assert bool(question.answers) != (
            question.kind in ("unanswerable", "biography", "long_form")
        )
        assert not any(answer.startswith("[") for answer in question.answers)
    if recognised:
        assert load(slices / file) == questions
