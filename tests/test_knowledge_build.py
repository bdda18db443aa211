"""Building an index: every kind of source, bad rows, and builds that are killed and resumed."""

import gzip
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import workbench.retrieval.build as building
from tests.helpers import Cli, examples
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import write
from workbench.retrieval import Page, Source, build_index, open_index
from workbench.retrieval.index import connect
from workbench.retrieval.sources import open_source, rows_of

ROWS = [
    {"id": str(i), "title": f"Title {i}", "text": f"Page {i} speaks of thing{i}. And of more."}
    for i in range(40)
]


def passages(folder: Path) -> list[tuple[str, str]]:
    rows = connect(folder).open_table("passages").to_arrow().to_pylist()
    return [(row["id"], row["body"]) for row in rows]


def test_every_kind_of_file_gives_the_same_pages(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    jsonl = write(tmp_path / "pages.jsonl", ROWS)
    (tmp_path / "pages.jsonl.gz").write_bytes(gzip.compress(jsonl.read_bytes()))
    pq.write_table(
        pa.table({name: [row[name] for row in ROWS] for name in ROWS[0]} | {"url": ["u"] * 40}),
        tmp_path / "p.parquet",
    )
    tsv = [f'{row["id"]}\t"{row["text"]}"\t{row["title"]}' for row in ROWS]
    (tmp_path / "psgs.tsv").write_text("\n".join(["id\ttext\ttitle", *tsv]))
    expected = [Page(row["id"], row["title"], row["text"]) for row in ROWS]
    for name in ("pages.jsonl", "pages.jsonl.gz", "p.parquet", "psgs.tsv"):
        source = open_source(tmp_path / name)
        assert [page for _, page in source.pages(0)] == expected, name
        numbers = [number for number, _ in source.pages(0)]
        assert list(source.pages(numbers[9])) == list(source.pages(0))[10:], name


def test_bad_empty_and_repeated_rows_are_counted_and_skipped(tmp_path: Path, cli: Cli) -> None:
    lines = [
        json.dumps(ROWS[0]),
        "{broken",
        '["a list"]',
        "",
        json.dumps({"title": "no text"}),
        json.dumps({"id": "e", "text": " "}),
        json.dumps(ROWS[0]),
        json.dumps({**ROWS[0], "text": "Another text."}),
        json.dumps({"id": "n", "text": 5}),
        json.dumps({"id": "copy", "title": "Title 0", "text": ROWS[0]["text"]}),
        json.dumps({"text": "No id. \ud800"}),
        "[" * 100_000,
        json.dumps({"text": "No id. \ud800"}),
        '{"id": "x", "te',
    ]
    (tmp_path / "pages.jsonl").write_text("\n".join(lines))
    pages = tmp_path / "pages.jsonl"
    command = f"index build mixed --from {pages} --root {tmp_path} --json"
    code, out, _ = cli(command)
    assert code == 3 and cli(command)[:2] == (code, out)  # the second call does nothing
    result = json.loads(out)
    counts = {"pages": 2, "passages": 2, "empty": 1, "duplicates": 3, "failed": 7}
    assert result.items() >= counts.items()
    assert [failure.partition(":")[0] for failure in result["failures"]] == [
        f"line {number}" for number in (2, 3, 5, 8, 9, 12, 14)
    ]
    assert [body for _, body in passages(tmp_path / "mixed")] == [
        f"Title 0\n{ROWS[0]['text']}",
        "\nNo id. \ufffd",
    ]


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.tsv.gz", "a.txt.gz"])
def test_a_truncated_archive_is_refused_before_anything_is_built(tmp_path: Path, name: str) -> None:
    content = "".join(f"{random.Random(n).random()}\t{n}\n" for n in range(5000))
    whole = gzip.compress(
        (json.dumps({"text": content}) if "jsonl" in name else f"text\tid\n{content}").encode()
    )
    for broken in (whole[: len(whole) // 2], whole[:-4], b"no archive"):
        (tmp_path / name).write_bytes(broken)
        with raises_error(r"the archive is broken.*: download it again"):
            build_index("cut", tmp_path / name, root=tmp_path / "indexes")
        assert not (tmp_path / "indexes").exists()
    (tmp_path / name).write_bytes(whole)
    assert build_index("cut", tmp_path / name, root=tmp_path / "indexes")["status"] == "complete"


@pytest.mark.parametrize(("name", "content", "message"), examples("unusable_sources"))
def test_an_unusable_source_leaves_no_index(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with raises_error(message):
        build_index("wrong", tmp_path / name, root=tmp_path)
    assert not (tmp_path / "wrong").exists()


def test_a_streamed_data_set_is_read_from_any_row() -> None:
    from datasets import Dataset

    stream = Dataset.from_list(
        [{"id": row["id"], "url": "u", **row} for row in ROWS]
    ).to_iterable_dataset()
    rows = list(rows_of(stream, "hf:x", 0))
    assert rows == [
        (i, Page(row["id"], row["title"], row["text"])) for i, row in enumerate(ROWS, start=1)
    ]
    assert list(rows_of(stream, "hf:x", 30)) == rows[30:]
    with raises_error(r"columns are 'a'; expected 'text'"):
        list(rows_of(Dataset.from_list([{"a": 1}]).to_iterable_dataset(), "hf:x", 0))


def test_another_source_or_setting_under_the_same_name_is_refused(tmp_path: Path) -> None:
    one = write(tmp_path / "one.jsonl", ROWS)
    other = write(tmp_path / "other.jsonl", ROWS[:-1])
    card = build_index("pages", one, root=tmp_path)
    with raises_error(r"one\.jsonl.*other\.jsonl.*: choose another name, or delete"):
        build_index("pages", other, root=tmp_path)
    with raises_error("words 9, encoder none"):
        build_index("pages", one, words=9, root=tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "letter.txt").write_text("Dear")
    with raises_error("not an index"):
        build_index("notes", one, root=tmp_path)
    one.rename(tmp_path / "moved.jsonl")
    # the same pages from another place
    assert build_index("pages", tmp_path / "moved.jsonl", root=tmp_path) == card


class Broken(Exception):
    pass


def breaking(rows: list[dict[str, str]], after: int) -> Source:
    """A source of the pages of `rows` that raises `Broken` after `after` rows."""

    def pages(skip: int) -> Iterator[tuple[int, Page | str]]:
        for number, row in itertools.islice(enumerate(rows, start=1), skip, None):
            if number > after:
                raise Broken
            yield (
                number,
                Page(row["id"], row["title"], row["text"]) if row["text"] else "empty on purpose",
            )

    return Source("memory", "same", pages)


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 8, 39])
def test_an_unfinished_index_is_not_opened_and_resumes_to_the_same_passages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    monkeypatch.setattr(building, "STEP", 8)
    rows = [*ROWS[:5], {"id": "bad", "title": "", "text": ""}, *ROWS[5:], ROWS[3]]
    whole = build_index("whole", breaking(rows, 99), words=6, root=tmp_path)
    if not after:
        with pytest.raises(Broken):
            build_index("cut", breaking(rows, after), words=6, root=tmp_path)
    for cut in {after, after + 1} - {0}:
        with pytest.raises(Broken):
            build_index("cut", breaking(rows, cut), words=6, root=tmp_path)
        with raises_error(r"resume it with `workbench index build .*cut --from memory --words 6`"):
            open_index("cut", tmp_path)
    lost = [
        {
            "id": "lost:0",
            "row": 999,
            "title": "",
            "key": "",
            "text": "a step whose end was never written",
        }
    ]
    if (tmp_path / "cut" / "passages.lance").exists():
        connect(tmp_path / "cut").open_table("passages").add(building._arrow(lost, None))
    card = build_index("cut", breaking(rows, 99), words=6, root=tmp_path)
    assert passages(tmp_path / "cut") == passages(tmp_path / "whole")
    assert {**card, "command": "", "seconds": 0} == {**whole, "command": "", "seconds": 0}
    assert card["duplicates"] == card["failed"] == 1
    queries = ["thing7 page", "speaks of more"]
    one, other = (open_index(name, tmp_path).search(queries, 5) for name in ("cut", "whole"))
    assert one == other


def test_a_second_builder_is_refused(tmp_path: Path) -> None:
    source = breaking(ROWS, 99)
    met: list[int] = []

    def second(*_: object) -> None:
        if not met:
            met.append(1)
            with raises_error("being built by another process"):
                build_index("one", source, root=tmp_path)

    build_index("one", source, root=tmp_path, progress=second)
    assert met == [1] and len(open_index("one", tmp_path)) == 40


def test_the_command_line_builds_lists_shows_and_searches(tmp_path: Path, cli: Cli) -> None:
    source = write(tmp_path / "p.jsonl", ROWS)

    def call(command: str) -> Any:
        code, out, err = cli(f"index {command} --root {tmp_path} --json")
        return json.loads(out) if code == 0 else err

    assert call(f"build pages --from {source}")
    listed = call("search")["indexes"]
    assert [(row["name"], row["passages"]) for row in listed] == [("pages", 40)]
    assert call("search pages")["words"] == 100
    assert call("search pages 'thing7: OR (' --k 2")["passages"][0]["id"] == "7:0"
    assert isinstance(call("search pages x --mode dense"), str)
    assert call("search none") == (
        f"workbench: no index in {tmp_path / 'none'}: build one with "
        "`workbench index build none --from FILE`\n"
    )
