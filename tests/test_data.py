"""Question files (formats, mappings, ids, splits, errors) and the command `data show`."""

import gzip
import json
from pathlib import Path

import pytest

from tests.helpers import Cli, examples, printed, write_json
from tests.helpers.errors import raises_error
from workbench.data import NAMES, check_trainable, load, split_of
from workbench.data.files import read_hub
from workbench.types import JsonObject, Question

ROWS = examples("question_rows")


def jsonl(rows: list[JsonObject]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def check(questions: list[Question]) -> None:
    assert [(q.id, q.text, q.answers, q.title) for q in questions] == [
        ("a", "Who wrote Emma?", ("Jane Austen", "Austen"), "Emma"),
        ("b", "Where is Kyōto?", ("Japan",), ""),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.jsonl", json.dumps(ROWS)),  # a JSON list named .jsonl
        ("q.json", json.dumps({"version": "1", "license": "x", "data": ROWS})),  # wrapped
        ("q.json", "\ufeff" + json.dumps(ROWS)),  # a byte order mark
        ("q.jsonl", jsonl(ROWS).replace("\n", "\r\n") + "\r\n"),
    ],
)
def test_json_formats_are_detected_by_content(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode())
    check(load(tmp_path / name))


def test_crlf_tables_and_line_separators_inside_values(tmp_path: Path) -> None:
    (tmp_path / "q.tsv").write_bytes(b'question\tanswers\r\nWho said "no\t5\r\n')
    assert load(tmp_path / "q.tsv")[0].text == 'Who said "no' and load(tmp_path / "q.tsv")[
        0
    ].answers == ("5",)
    (tmp_path / "q.csv").write_bytes(b'question,answers\r\n"Two\r\nlines?","a, b"\r\n')
    assert [(q.text, q.answers) for q in load(tmp_path / "q.csv")] == [("Two\r\nlines?", ("a, b",))]
    (tmp_path / "q.jsonl").write_text('{"question": "One\u2028two?", "answers": []}\n')
    assert load(tmp_path / "q.jsonl")[0].text == "One\u2028two?"


def test_mapping_names_columns(tmp_path: Path) -> None:
    row = {
        "prompt": "Who?",
        "gold": "['Ada', 'A. L.']",
        "key": 7,
        "more": {"page": "Ada"},
        "question": "not this",
    }
    write_json(tmp_path / "q.json", [row])
    mapping = {"question": "prompt", "answers": "gold", "id": "key", "title": "more.page"}
    (found,) = load(tmp_path / "q.json", mapping=mapping)
    assert (found.id, found.text, found.answers, found.title) == (
        "7",
        "Who?",
        ("Ada", "A. L."),
        "Ada",
    )
    with raises_error(r"no column 'nope'; its columns are prompt, gold, key, more, question"):
        load(tmp_path / "q.json", mapping={"question": "nope"})
    with raises_error("no field 'response' to map"):
        load(tmp_path / "q.json", mapping={"response": "gold"})


def test_ids_are_stable_and_unique(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(
        jsonl([{"question": "Who?"}, {"question": "Where?"}, {"question": "Who?"}])
    )
    first = [question.id for question in load(tmp_path / "q.jsonl")]
    (tmp_path / "q.jsonl").write_text(jsonl([{"question": "Where?"}, {"question": "Who?"}]))
    assert [question.id for question in load(tmp_path / "q.jsonl")] == [first[1], first[0]]
    assert len(set(first)) == 3 and first[2] == f"{first[0]}-2"


def test_copies_of_a_question_without_id_are_in_one_split(tmp_path: Path) -> None:
    rows = [{"question": f"Who is {number}?"} for number in range(40)]
    (tmp_path / "q.jsonl").write_text(jsonl(rows * 3))
    by_text: dict[str, set[str]] = {}
    for question in load(tmp_path / "q.jsonl"):
        by_text.setdefault(question.text, set()).add(question.meta["split"])
    assert all(len(splits) == 1 for splits in by_text.values())
    assert len(set.union(*by_text.values())) > 1


@pytest.mark.parametrize(
    ("text", "message"), [*examples("bad_files"), ("[" * 100_000, "nested too deeply")]
)
def test_a_bad_file_is_a_one_line_error(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(text)
    with raises_error(message):
        load(tmp_path / "q.jsonl")


@pytest.mark.parametrize("name", ["q.jsonl", "q.csv", "q.txt"])
def test_utf16_and_compressed_files_without_suffix_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes("question,answers\nWho?,a\n".encode("utf-16"))
    with raises_error("the file is encoded as UTF-16: save it as UTF-8"):
        load(tmp_path / name)
    (tmp_path / name).write_bytes(gzip.compress(b"question,answers\nWho?,a\n"))
    with raises_error(r"the file is compressed: unpack it, or let its name end in \.gz"):
        load(tmp_path / name)


def test_splits_depend_on_the_id_alone(tmp_path: Path) -> None:
    rows = [{"id": f"q{i}", "question": f"{i}?"} for i in range(300)]
    (tmp_path / "q.jsonl").write_text(jsonl(rows))
    parts = {name: load(tmp_path / "q.jsonl", split=name) for name in ("rl", "validation", "test")}
    assert sum(map(len, parts.values())) == 300 and 210 < len(parts["rl"]) < 270
    assert all(
        question.meta["split"] == name == split_of(question.id)
        for name, part in parts.items()
        for question in part
    )
    assert load(tmp_path / "q.jsonl", split="test", limit=2) == parts["test"][:2]
    with raises_error("no split 'train' in a file"):
        load(tmp_path / "q.jsonl", split="train")


def test_a_canary_keeps_questions_out_of_training(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(
        jsonl([{"question": "Who?"}, {"question": "Where?", "canary": "BENCHMARK … GUID"}])
    )
    questions = load(tmp_path / "q.jsonl")
    assert [question.meta.get("evaluation_only") for question in questions] == [None, True]
    check_trainable(questions[:1])
    with raises_error("for evaluation only"):
        load(tmp_path / "q.jsonl", training=True)


def test_loading_from_the_hub_offline_is_a_one_line_error() -> None:
    with raises_error(r"cannot load hotpotqa from the hub \(hotpotqa/hotpot_qa") as error:
        load("hotpotqa", limit=1)
    assert "name a local file" in str(error.value)


def test_read_hub_returns_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader also accepts a local folder, which needs no network."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "validation.jsonl").write_text(jsonl(ROWS))
    records = read_hub(str(tmp_path / "data"), None, "validation", "mine")
    assert records == [("mine: row 1", ROWS[0]), ("mine: row 2", ROWS[1])]
    with raises_error("cannot load mine from the hub"):
        read_hub(str(tmp_path / "data"), None, "nope", "mine")


def test_data_show_prints_counts_and_questions(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "q.csv").write_text("prompt,gold\nWho?,Ada\nWhere?,\nWhen?,1815\n")
    mapping = "question=prompt,answers=gold"
    arguments = ("data", "show", tmp_path / "q.csv", "--map", mapping, "-n", "2")
    result = cli(*arguments, "--json")
    found = printed(result)
    assert result[2] == ""
    counts = (found["n"], found["answered"], found["kinds"], len(found["questions"]))
    assert counts == (3, 2, {"single": 3}, 2)
    assert found["questions"][0]["text"] == "Who?" and found["questions"][0]["answers"] == ["Ada"]
    code, out, _ = cli(*arguments)
    assert code == 0 and "Where?" in out and "When?" not in out


def test_data_show_lists_all_data_sets(cli: Cli) -> None:
    sets = printed(cli("data show --json"))["data_sets"]
    assert [row["name"] for row in sets] == list(NAMES)
