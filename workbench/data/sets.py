"""Define the known data sets: name, columns, source, and the function that reads a record.

A record comes from the authors' file or from the hub's copy. Rules for all data sets:

* A question's id is "" if the data set has no ids.
* The `answers` are alternatives, and one of them is enough. They are forms of one answer, except in
  NQ-open and WebQuestions, which have several correct answers. For the kind "list", `answers` are
  the items of the list.
* The `kind` is "yes_no" if the gold answer is yes or no. CRAG also has "false_premise" and "list".
* A question without an answer has the kind "unanswerable", no answers, and `answerable: False` in
  its `meta`.
* A long-form question has no answers. `meta["reference"]` is a reference answer, if there is one.
"""

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from workbench.data import longform, short
from workbench.data.record import plain
from workbench.types import JsonMapping, Question

Reader = Callable[[JsonMapping], Iterable[Question]]


@dataclass(frozen=True)
class DataSet:
    """A data set, with its columns, its source and the function that reads its records.

    Attributes:
        read: converts one record to questions.
        columns: alternative lists of columns. A list is one text, such as "question, answer". A
            record must have all columns of one list.
        own: like `columns`. A file with all columns of one of these lists is recognised as this
            data set. () if its columns are not distinctive.
        hub: repository on the hub, or "".
        split: default split on the hub.
        file: the only file to read from the repository `hub`; None for all files of the split.
        home: where to download the authors' file, if `hub` is "".
        evaluation_only: whether the authors forbid training on the data set.
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
        """Return whether a record has all columns of at least one list in `columns`."""
        return _has_one(record, self.columns)

    def recognises(self, record: JsonMapping) -> bool:
        """Return whether a record fits, and also has all columns of at least one list in `own`."""
        return self.fits(record) and _has_one(record, self.own)


def _has_one(record: JsonMapping, alternatives: Iterable[str]) -> bool:
    return any(record.keys() >= set(columns.split(", ")) for columns in alternatives)


PLAIN = DataSet("file", plain, ("question",))

_READERS = (
    *(short.hotpotqa, short.musique, short.squad, short.nq_open, short.webquestions, short.crag),
    *(short.simpleqa, short.chinese_simpleqa, short.selfaware, short.truthfulqa, plain),
    *(longform.factscore_bios, longform.longfact, longform.eli5, longform.webglm_qa),
)


def _data_sets() -> dict[str, DataSet]:
    """Return name -> data set for all data sets in the file `sets.toml`."""
    readers = {read.__name__: read for read in _READERS}
    tables = tomllib.loads(Path(__file__).with_name("sets.toml").read_text(encoding="utf-8"))
    return {
        name: DataSet(
            name,
            readers[table.pop("read", name)],
            tuple(table.pop("columns")),
            tuple(table.pop("own", ())),
            **table,
        )
        for name, table in tables.items()
    }


SETS = _data_sets()
