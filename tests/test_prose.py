"""Plain English: words of the earlier, hard-to-read prose do not come back.

A page of documentation may contain none. Packages that still contain some are listed with their
counts, which may only fall. Lower a count, or delete its line, with the change that lowers it.
"""

import re
from pathlib import Path

import pytest

from tests.helpers import ROOT, read_json

WORDS = re.compile(
    r"\b(whoever|nobody|astray|beside|told|held against|lest|hence|none of|that is none"
    r"|is asked of|strangers|mended)\b",
    re.IGNORECASE,
)
PAGES = (
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md", "data/README.md"),
    # docs/api.md consists of docstrings, which count for their packages
    *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md") if page.stem != "api"),
)
NOTEBOOKS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
LONGEST_NOTEBOOK = 600  # words of Markdown
LONGEST_CELL, WIDEST_CELL = 14, 80  # lines and columns of code, so that cells do not scroll
REMAINING = {
    "workbench/claims": 6,
    "workbench/methods": 10,
    "workbench/text": 2,
    "workbench/verifier": 1,
}


def hits(text: str) -> list[str]:
    """The listed words of a text, without three names of stored fields."""
    return WORDS.findall(re.sub('"(strangers|beside|told)"', "", text))


def prose(markdown: str) -> str:
    """Markdown without its code blocks and code spans, in one line a paragraph."""
    text = re.sub(r"^```.*?^```$", "", markdown, flags=re.S | re.M)
    return re.sub(r"(?<=\S)\n(?=\S)", " ", re.sub(r"`[^`\n]*`", "", text))


def cells_of(notebook: str, kind: str) -> list[str]:
    cells = read_json(ROOT / "notebooks" / notebook)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


def package_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[: 2 if len(parts) > 1 else 1])


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_in_plain_english(page: str) -> None:
    assert hits(prose((ROOT / page).read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_notebook_is_short_and_in_plain_english(notebook: str) -> None:
    text = "\n\n".join(cells_of(notebook, "markdown"))
    assert hits(prose(text)) == []
    assert len(text.split()) <= LONGEST_NOTEBOOK
    first = text.partition("\n\n## ")[0]
    assert first.startswith("# ") and "**Goal**: " in first and "minute" in first
    for code in cells_of(notebook, "code"):
        lines = code.splitlines()
        assert len(lines) <= LONGEST_CELL and max(map(len, lines)) <= WIDEST_CELL, code


def test_the_words_of_the_library_become_fewer() -> None:
    counts: dict[str, int] = {}
    for path in sorted((ROOT / "workbench").rglob("*.py")):
        found = len(hits(path.read_text(encoding="utf-8")))
        counts[package_of(path)] = counts.get(package_of(path), 0) + found
    risen = {name: n for name, n in counts.items() if n > REMAINING.get(name, 0)}
    assert risen == {}, f"see {WORDS.pattern}: more than REMAINING allows"


def test_listed_words_are_found_in_prose_and_not_in_code() -> None:
    assert hits(prose("Nobody\nwas `told` lest\nit be none\nof it.")) == [
        "Nobody",
        "lest",
        "none of",
    ]
    assert hits(prose("```sh\necho told\n```\n")) == []
    assert hits('{"strangers": strangers}') == ["strangers"]
