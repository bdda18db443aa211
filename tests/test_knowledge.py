"""Searching an index: words of any script, hostile queries, titles, vectors."""

from pathlib import Path
from typing import Any

import pytest

import workbench.retrieval.build as building
from tests.helpers import examples
from tests.helpers.bag_encoder import make_encoder
from tests.helpers.errors import raises_error
from tests.helpers.score_helpers import write
from workbench.retrieval import Index, build_index, open_index

PAGES = examples("pages")
HOSTILE = [
    "",
    "   ",
    "\0",
    "\ud800",
    '"unclosed',
    "a AND (b OR NOT",
    "body:x title:*",
    "'; DROP TABLE x; --",
    "clown " * 17_000,
    "x" * 100_000,
    "首都" * 50_000,
    "".join(map(chr, range(1, 3000))),
    " ".join(f"word{i}" for i in range(15_000)),
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("index")
    build_index("small", write(folder / "pages.jsonl", PAGES), words=20, root=folder)
    return open_index("small", folder)


def first(index: Index, query: str, **options: Any) -> str:
    found = index.search([query], 3, **options)[0]
    return found[0].id if found else ""


@pytest.mark.parametrize(("query", "page"), examples("words"))
def test_words_of_any_script_are_found(index: Index, query: str, page: str) -> None:
    assert first(index, query).partition(":")[0] == page


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_queries_are_searched_as_words(index: Index, query: str) -> None:
    free, limited = index.search([query] * 2, 3, [None, "It (film)"])
    assert len(free) <= 3 and len(limited) == 3
    assert all(passage.title == "It (film)" for passage in limited)


def test_equal_scores_are_in_the_order_of_ids(tmp_path: Path) -> None:
    rows = [{"id": f"{i:03}", "text": f"the same word{i}"} for i in range(150)]
    build_index("ties", write(tmp_path / "ties.jsonl", rows), root=tmp_path)
    found = open_index("ties", tmp_path).search(["same"], 5)[0]
    assert [passage.id for passage in found] == [f"{i:03}:0" for i in range(5)]
    assert len({passage.score for passage in found}) == 1


def test_titles_filter_the_passages_before_ranking(index: Index) -> None:
    found = index.search(
        ["clown", "clown", "a singer", "country", "two sisters", "首都"],
        50,
        [
            "IT FILM",
            "The Who; it (film) ;Nobody",
            "us",
            "u.s.",
            "Sense; or Sensibility",
            "《北京》",
        ],
    )
    assert {passage.title for passage in found[0]} == {"It (film)"}
    assert len(found[0]) == len(found[1]) - 1 == 8 and [p.score == 0 for p in found[1][-2:]] == [
        False,
        True,
    ]
    assert {passage.title for passage in found[1]} == {"It (film)", "The Who"}
    assert [[passage.id for passage in one] for one in found[2:]] == [
        ["us2:0"],  # only the closest title
        ["us:0"],
        ["semi:0"],
        ["bj:0", "bj:1"],
    ]


def test_impossible_searches_are_refused(index: Index, tmp_path: Path) -> None:
    with raises_error(r"no vectors.*--encoder"):
        index.search(["clown"], 3, mode="dense")
    with raises_error(r"no index .*workbench index build none"):
        open_index("none", tmp_path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "index.json").write_text("{")
    with raises_error(r"index\.json is damaged"):
        open_index("broken", tmp_path)


@pytest.fixture(scope="module")
def bag_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False], ids=["every vector compared", "vector index"])
def test_dense_and_hybrid_search(
    bag_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exact: bool
) -> None:
    monkeypatch.setattr(building, "EXACT", 10_000 if exact else 100)
    rows = [
        {
            "id": f"{i:04}",
            "title": f"T{i % 7}",
            "text": f"w{i % 500} w{i * 7 % 500} w{i * 13 % 500}.",
        }
        for i in range(1200)
    ]
    card = build_index(
        "dense", write(tmp_path / "p.jsonl", rows), encoder=str(bag_encoder), root=tmp_path
    )
    index = open_index("dense", tmp_path)
    assert card["encoder"] == str(bag_encoder)
    queries = [row["text"] for row in rows[::60]]
    for mode in ("dense", "hybrid"):
        found = index.search(queries, 5, mode=mode)
        assert all(
            any(p.text == query for p in passages)
            for query, passages in zip(queries, found, strict=True)
        )
    dense = index.search(queries, 5, mode="dense")
    assert all(passages[0].score == pytest.approx(1, abs=1e-3) for passages in dense)
    inside = index.search(["w3", "w3"], 5, ["T3", "Nobody"], mode="hybrid")
    assert {passage.title for passage in inside[0]} == {"T3"} and inside[1] == []
    assert index.search(["w3", ""], 5, ["T3", "T3"], mode="dense")[0][0].score
    assert index.search(["", "w3"], 5, mode="dense")[0] == []


@pytest.mark.slow
def test_a_missing_encoder_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    pages = write(tmp_path / "p.jsonl", PAGES)
    with raises_error("encoder 'no-such/model'"):
        build_index("none", pages, encoder="no-such/model", root=tmp_path)
    assert not (tmp_path / "none").exists()
