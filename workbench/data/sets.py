"""Define the known data sets: name, columns, source, and the function that reads a record.

A reader converts one record, of the authors' file or of the hub's copy, to questions. If the data
set has no ids, the id is empty. Rules for all data sets:

* `answers` are accepted forms of one answer. NQ-open and WebQuestions list several correct answers,
  and one of them is enough.
* The `kind` is `yes_no` if the gold answer is yes or no, and `false_premise` or `list` if the
  schema says so.
* A question without an answer has `kind="unanswerable"`, no answers, and `answerable: False` in its
  `meta`.
* A long-form question has no answers. `meta["reference"]` is a reference answer, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from workbench.data import longform, short
from workbench.data.record import plain
from workbench.types import JsonMapping, Question

Reader = Callable[[JsonMapping], Iterable[Question]]


@dataclass(frozen=True)
class DataSet:
    """A data set and its schema.

    Attributes:
        columns: alternative lists of columns, such as "question, answer". A record with all columns
            of one list can be read.
        own: alternative lists of columns that only this data set has. They identify a file.
        hub: repository on the hub, or "".
        split: default split on the hub.
        file: the file in a hub repository with several files.
        home: where to download the file if there is no hub copy.
        evaluation_only: whether the authors forbid training on it.
    """

    name: str
    read: Reader
    columns: tuple[str, ...]
    own: tuple[str, ...] = ()
    hub: str = ""
    config: str | None = None
    split: str = "test"
    file: str | None = None
    home: str = ""
    evaluation_only: bool = False

    def fits(self, record: JsonMapping) -> bool:
        """Return whether a record has all columns of one list in `columns`."""
        return _has_one(record, self.columns)

    def recognises(self, record: JsonMapping) -> bool:
        """Return whether a record has columns that only this data set has."""
        return self.fits(record) and _has_one(record, self.own)


def _has_one(record: JsonMapping, alternatives: Iterable[str]) -> bool:
    return any(record.keys() >= set(columns.split(", ")) for columns in alternatives)


PLAIN = DataSet("file", plain, ("question",))

# alternative columns: the authors' file, and the hub's copy
_SQUAD = ("paragraphs", "context, question, answers")
_TRUTHFULQA = (
    "question, best_answer, correct_answers",
    "Question, Best Answer, Correct Answers",
)
_ALL = (
    DataSet(
        "hotpotqa",
        short.hotpotqa,
        ("question, answer",),
        ("supporting_facts, context",),
        hub="hotpotqa/hotpot_qa",
        config="distractor",
        split="validation",
    ),
    DataSet(
        "musique",
        short.musique,
        ("question, answer, paragraphs",),
        ("question_decomposition, paragraphs",),
        hub="dgslibisey/MuSiQue",
        split="validation",
    ),
    DataSet(
        "squad_v2",
        short.squad,
        _SQUAD,
        _SQUAD,
        hub="rajpurkar/squad_v2",
        split="validation",
    ),
    DataSet(
        "xquad",
        short.squad,
        _SQUAD,
        hub="google/xquad",
        config="xquad.en",
        split="validation",
    ),
    DataSet(
        "nq_open",
        short.nq_open,
        ("question, answer",),
        hub="google-research-datasets/nq_open",
        split="validation",
    ),
    DataSet(
        "webquestions",
        short.webquestions,
        ("qText, answers", "url, question, answers", "utterance, targetValue"),
        ("qText, answers", "utterance, targetValue"),
        hub="stanfordnlp/web_questions",
    ),
    DataSet(
        "crag",
        short.crag,
        ("query, answer",),
        ("query, answer, question_type",),
        home=(
            "the data folder of the repository facebookresearch/CRAG"
            " (crag_task_1_and_2_dev_v4.jsonl.bz2)"
        ),
    ),
    DataSet(
        "simpleqa",
        short.simpleqa,
        ("problem, answer",),
        ("problem, answer",),
        hub="basicv8vc/SimpleQA",
    ),
    DataSet(
        "chinese_simpleqa",
        short.chinese_simpleqa,
        ("question, answer",),
        ("primary_category, question, answer",),
        hub="OpenStellarTeam/Chinese-SimpleQA",
        split="train",
    ),
    DataSet(
        "selfaware",
        short.selfaware,
        ("question, answer, answerable",),
        ("question, answer, answerable",),
        home="the data folder of the repository yinzhangyue/SelfAware (SelfAware.json)",
    ),
    DataSet(
        "truthfulqa",
        short.truthfulqa,
        _TRUTHFULQA,
        _TRUTHFULQA,
        hub="truthfulqa/truthful_qa",
        config="generation",
        split="validation",
    ),
    DataSet(
        "knowrl",
        plain,
        ("question, answers, title",),
        hub="zjunlp/KnowRL-Train-Data",
        file="knowrl_RLdata.json",
        split="train",
    ),
    DataSet(
        "factscore_bios",
        longform.factscore_bios,
        ("topic", "text"),
        ("topic, input, output",),
        home=(
            "the FActScore data of the repository shmsw25/FActScore (prompt_entities.txt, or a"
            " labelled *.jsonl)"
        ),
    ),
    DataSet(
        "longfact",
        longform.longfact,
        ("prompt",),
        ("prompt, canary",),
        home="the longfact folder of the repository google-deepmind/long-form-factuality",
        evaluation_only=True,
    ),
    DataSet(
        "eli5",
        longform.eli5,
        ("title, answers",),
        ("q_id, title, answers",),
        hub="Pavithree/eli5",
        split="train",
    ),
    DataSet(
        "webglm_qa",
        longform.webglm_qa,
        ("question, answer, references",),
        ("question, answer, references",),
        hub="THUDM/webglm-qa",
        split="train",
    ),
)
SETS = {data_set.name: data_set for data_set in _ALL}
