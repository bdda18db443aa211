"""`workbench data show --store`: retrieve passages for questions without them; refuse
evaluation-only data sets.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.helpers import Cli, printed, refusal
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import write
from workbench.data import load
from workbench.experiments.answering.retrieve import retrieve
from workbench.experiments.answering.sources import Sources
from workbench.methods import METHODS
from workbench.methods.bench import bench
from workbench.types import Passage, Question, WorkbenchError
from workbench.verdicts.checks import rule_checks

PAGES = (
    Passage("p1", "Oslo", "Oslo is the capital of Norway.", 3.5),
    Passage("p2", "Bergen", "Bergen lies in Norway.", 1.25),
)


def find(questions: Sequence[str], k: int) -> Sequence[Sequence[Passage]]:
    return [[page for page in PAGES if page.title in text][:k] for text in questions]


FOUND = Sources(find, rule_checks)


def test_questions_keep_passages_and_are_left_out_without_results(
    tmp_path: Path,
) -> None:
    own = Passage("own", "Vaasa", "Vaasa lies in Finland.")
    questions = [
        Question(
            "a",
            "Where do Oslo and Bergen lie?",
            ("Norway",),
            title="Oslo",
            kind="long_form",
            checklist=("In Norway.",),
        ),
        Question("b", "Where does Oslo's twin Vaasa lie?", passages=(own,)),
        Question("c", "Where does Lima lie?"),
    ]
    out = tmp_path / "made" / "questions.jsonl"
    assert retrieve(questions, FOUND, 2, out) == {
        "questions": 3,
        "had": 1,
        "retrieved": 1,
        "found_nothing": 1,
    }
    first, second = load(out)
    kept = (first.id, first.answers, first.title, first.kind, first.checklist)
    assert kept == ("a", ("Norway",), "Oslo", "long_form", ("In Norway.",))
    assert [(page.title, page.text) for page in first.passages] == [
        (page.title, page.text) for page in PAGES
    ]
    assert second.id == "b" and [page.text for page in second.passages] == [own.text]
    with raises_error("exists already"):
        retrieve(questions, FOUND, 2, out)
    with raises_error("no passage for any"):
        retrieve(questions[2:], FOUND, 2, tmp_path / "none.jsonl")
    assert not (tmp_path / "none.jsonl").exists()


def test_the_command_writes_forags_training_questions(tmp_path: Path, cli: Cli) -> None:
    rows = [
        {"question": f"Where does Oslo lie, on map {n}?", "answer": "Norway"} for n in range(40)
    ]
    bare, out = write(tmp_path / "bare.jsonl", rows), tmp_path / "questions.jsonl"
    index = an_index(tmp_path, cli)
    given = ["data", "show", bare, "--store", index, "--k", "1", "--out", out, "--json"]
    counts = {"questions": 40, "had": 0, "retrieved": 40, "found_nothing": 0}
    assert printed(cli(*given)) == {**counts, "out": str(out)}
    assert "exists already" in refusal(cli(*given))
    forag = METHODS["forag"]
    assert forag.stages is not None
    with raises_error("has no passages"):
        forag.stages(forag.configure("paper"), bench("paper", bare))
    with pytest.raises(WorkbenchError) as refused:  # a judge is missing
        forag.stages(forag.configure("paper"), bench("paper", out))
    assert "has no passages" not in str(refused.value)


def test_evaluation_only_data_sets_are_refused(tmp_path: Path, cli: Cli) -> None:
    """A written copy would no longer be marked as evaluation-only."""
    row = {"question": "Where does Oslo lie?", "canary": "not for training"}
    source, out = write(tmp_path / "asked.jsonl", [row]), tmp_path / "questions.jsonl"
    assert load(source)[0].meta["evaluation_only"]
    status, _, said = cli(
        "data show", str(source), "--store", an_index(tmp_path, cli), "--out", str(out)
    )
    assert status == 2 and "evaluation" in said and not out.exists()


def an_index(folder: Path, cli: Cli) -> str:
    rows = [{"title": page.title, "text": page.text} for page in PAGES]
    pages, index = write(folder / "pages.jsonl", rows), str(folder / "index")
    assert cli(f"index build {index} --from", str(pages))[0] == 0
    return index
