"""Read the pages for an index from files, hub data sets or the closed world."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.data.files import ROWS, open_bytes, open_rows, parquet_file, suffix_of
from workbench.data.record import passage_id
from workbench.retrieval.words import clean
from workbench.runs.folder import file_digest
from workbench.types import JsonMapping, WorkbenchError
from workbench.util import hub
from workbench.util.failures import error_line
from workbench.util.jsonl import json_digest
from workbench.world.world import load_world

if TYPE_CHECKING:
    from datasets import IterableDataset

EXPECTED = "'text' and, optionally, 'title' and 'id'"
TEXT_SUFFIXES = (".txt", ".md")
FORMATS = (
    "JSONL, JSON, Parquet, TSV or CSV with a header, plain text (.txt, .md) or a folder of plain"
    " text"
)


@dataclass(frozen=True)
class Page:
    """A page of text with id and title, before it is split into passages."""

    id: str
    title: str
    text: str


# number of the row in its source, from 1; the page, or the reason why it cannot be read
Row = tuple[int, Page | str]


@dataclass(frozen=True)
class Source:
    """A source of pages for an index: a file, a folder, a hub data set or the closed world.

    Attributes:
        spec: the source in `workbench index build NAME --from SPEC`, such as "wiki.jsonl" or
            "hf:owner/name:train".
        fingerprint: digest of the content; for a hub data set, the spec itself.
        pages: `pages(n)` skips n rows and yields (row number, page). For an unreadable row, the
            page is replaced by the reason (a string).
    """

    spec: str
    fingerprint: str
    pages: Callable[[int], Iterator[Row]]
    unit: str = "row"  # what a number counts: "line", "row" or "file"
    size: int = 0  # bytes of a file


def open_source(spec: str | Path) -> Source:
    """Return the source of pages that `spec` names.

    Args:
        spec: a file, a folder, `hf:DATASET[/CONFIG][:SPLIT]` for a hub data set, or `world[:SEED]`
            for pages about the closed world that this seed (default 0) generates.

    Raises:
        WorkbenchError: the file does not exist, or its format is not supported.
    """
    spec = str(spec)
    if spec.startswith("hf:"):
        return _hub(spec)
    if spec.partition(":")[0] == "world" and not Path(spec).exists():
        return _world(spec)
    path = Path(spec)
    if path.is_dir():
        return _folder(path)
    if not path.is_file():
        raise WorkbenchError(
            f"{spec}: no such file: --from takes {FORMATS}, hf:DATASET[:SPLIT], or world"
        )
    return _file(path)


def page_of(row: JsonMapping) -> Page | str:
    """Convert a row to a page; return the reason as a string if the row is malformed.

    The row has the key "text" and, optionally, "title" and "id". The default id is a hash of title
    and text.
    """
    text, title, name = row.get("text"), row.get("title"), row.get("id")
    if "text" not in row:
        return f"no 'text', only {_names(row)}"
    if not isinstance(text, str | None) or not isinstance(title, str | None):
        return f"'{'title' if isinstance(text, str | None) else 'text'}' is not a string"
    if isinstance(name, dict | list | bool | float):
        return "'id' is neither a string nor a whole number"
    text, title = clean(text or ""), clean(title or "")
    return Page(passage_id(title, text) if name in (None, "") else clean(str(name)), title, text)


def _names(columns: Iterable[str]) -> str:
    return ", ".join(f"'{str(name)[:40]}'" for name in list(columns)[:12]) or "nothing"


def _check_columns(spec: str, columns: Sequence[str] | None) -> None:
    if columns is not None and "text" not in columns:
        raise WorkbenchError(
            f"{spec}: its columns are {_names(columns)}; expected {EXPECTED}: rename the columns"
        )


def _file(path: Path) -> Source:
    suffix = suffix_of(path)
    if suffix not in (*ROWS, *TEXT_SUFFIXES):
        raise WorkbenchError(
            f"{path}: this file format is not supported: give {FORMATS}, or one of these with .gz"
            " or .bz2"
        )
    digest, size = _digest(path), path.stat().st_size
    if suffix in TEXT_SUFFIXES:
        return Source(str(path), digest, partial(_texts, [path]), "file", size)
    unit = "row" if suffix == ".parquet" else "line"
    return Source(str(path), digest, partial(_pages, path), unit, size)


def _pages(path: Path, skip: int) -> Iterator[Row]:
    _, rows = open_rows(path, skip, ("id", "title", "text"))
    checked = skip > 0
    for number, row in rows:
        if isinstance(row, dict) and not checked:
            _check_columns(str(path), list(row))
            checked = True
        yield number, row if isinstance(row, str) else page_of(row)


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file. Archives are first read to the end, to detect broken ones."""
    if suffix_of(path) == ".parquet":
        parquet_file(path)
    else:
        with open_bytes(path) as file:
            while file.read(1 << 20):
                pass
    return file_digest(path)


def _texts(paths: Sequence[Path], skip: int, folder: Path | None = None) -> Iterator[Row]:
    """Yield (number, page) for each plain-text file after the first `skip` files.

    The title is the file name without suffix. The id is the title or, with `folder`, the path in
    this folder without suffix. A file that is not UTF-8 yields the reason instead of a page.
    """
    for number, path in enumerate(paths[skip:], start=skip + 1):
        title = clean(Path(path.name.removesuffix(".gz").removesuffix(".bz2")).stem)
        name = path.relative_to(folder).with_suffix("").as_posix() if folder else title
        with open_bytes(path) as file:
            data = file.read()
        try:
            yield number, Page(clean(name), title, clean(data.decode("utf-8-sig")))
        except UnicodeDecodeError:
            yield number, f"{path.name} is not UTF-8"


def _folder(path: Path) -> Source:
    files = sorted(
        file for file in path.rglob("*") if file.suffix in TEXT_SUFFIXES and file.is_file()
    )
    if not files:
        raise WorkbenchError(f"{path}: this folder has no .txt or .md file: --from takes {FORMATS}")
    digests = [[str(file.relative_to(path)), _digest(file)] for file in files]
    fingerprint = json_digest(digests, 64)
    return Source(str(path), fingerprint, partial(_texts, files, folder=path), "file")


def _world(spec: str) -> Source:
    seed = spec.partition(":")[2] or "0"
    if not seed.isdecimal():
        raise WorkbenchError(
            f"{spec}: no such world: write world:SEED with a whole number, such as world:0"
        )
    world = load_world(int(seed))
    pages = [Page(page.id, page.title, page.text) for page in world.pages]
    return Source(
        f"world:{seed}",
        world.hash,
        lambda skip: iter(list(enumerate(pages, start=1))[skip:]),
    )


def _hub(spec: str) -> Source:
    """Return a source that streams a hub data set.

    `spec` is "hf:OWNER/NAME[/CONFIG][:SPLIT]" or "hf:NAME[:SPLIT]"; the default split is "train".
    """
    name, _, split = spec.removeprefix("hf:").partition(":")
    owner, *rest = name.split("/")
    if not owner or len(rest) > 2 or not all(rest):
        raise WorkbenchError(
            f"{spec}: write hf:OWNER/NAME[/CONFIG][:SPLIT], as in"
            " hf:wikimedia/wikipedia/20231101.en:train"
        )
    full_spec = f"hf:{name}:{split or 'train'}"
    dataset, config = "/".join([owner, *rest[:1]]), rest[1] if len(rest) == 2 else None

    @cache  # opened only when rows are read: a finished index needs no network
    def stream() -> "IterableDataset":
        try:
            return hub.dataset(dataset, config, split or "train", streaming=True)
        except OSError as error:
            raise WorkbenchError(
                f"{full_spec}: cannot be opened ({error}): check the name and the connection to"
                " the hub"
            ) from None

    return Source(full_spec, full_spec, lambda skip: rows_of(stream(), full_spec, skip))


def rows_of(stream: "IterableDataset", spec: str, skip: int) -> Iterator[Row]:
    """Yield (row number, page) for the rows of a streamed hub data set.

    For a malformed row, the page is replaced by the reason (a string).

    Args:
        spec: name of the data set in error messages.
        skip: number of rows to leave out at the beginning.

    Raises:
        WorkbenchError: the data set has no column `text`, or the connection fails.
    """
    _check_columns(spec, stream.column_names)
    rows = iter(stream.skip(skip))
    number = skip
    while True:
        try:
            row = next(rows, None)
        except Exception as error:  # the connection failed; libraries raise many types
            reason = error_line(error)
            raise WorkbenchError(
                f"{spec}: the connection failed after {number} rows ({reason}): the same command"
                " resumes there"
            ) from None
        if row is None:
            return
        number += 1
        if number == 1:
            _check_columns(spec, list(row))
        yield number, page_of(row)
