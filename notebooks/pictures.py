"""Add a PNG to every plot and token view of executed notebooks, for viewers without scripts, such
as GitHub.

    python notebooks/pictures.py notebooks/*.ipynb

A Chromium on the path draws them, plots with plotly's own script. A picture changes only if its
plot has. The data of a token view, present if WORKBENCH_PICTURES was set, is removed once drawn.
"""

import base64
import io
import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from workbench.inspector.token_view import VIEW, page
from workbench.types import WorkbenchError
from workbench.util.jsonl import replace_rows

PLOT, PNG = "application/vnd.plotly.v1+json", "image/png"
CHROMIUM = next(
    filter(
        None,
        map(shutil.which, ("chromium", "chromium-browser", "google-chrome")),
    ),
    None,
)
# pixels of a plot that does not say; JupyterLab shows the picture first, in a cell of this width if
# the window has 1,300 pixels
WIDTH, HEIGHT = 860, 430
TALL = 1600  # of the page that a token view is drawn on, so that nothing of it is scrolled away
COLOURS = 128  # of a picture: plots are flat, and a palette takes a quarter of the bytes
DRAW = """
async ([figure, width, height]) => {
  const {data, layout} = figure;
  const url = await Plotly.toImage({data, layout}, {format: "png", width, height});
  return url.slice(url.indexOf(",") + 1);
}
"""


def add_pictures(files: Sequence[Path]) -> int:
    """Draw the plots and token views of notebooks into them, and return how many were drawn.

    Raises:
        WorkbenchError: no Chromium, or no playwright to drive it; a file that is no notebook.
    """
    notebooks = {file: _read(file) for file in files}
    outputs = [
        one
        for notebook in notebooks.values()
        for cell in notebook["cells"]
        for one in cell.get("outputs", ())
    ]
    plots = [one for one in outputs if PLOT in one.get("data", {})]
    views = [one for one in outputs if VIEW in one.get("metadata", {})]
    if plots or views:
        drawn = draw(
            [one["data"][PLOT] for one in plots],
            [one["metadata"].pop(VIEW) for one in views],
        )
        for one, picture in zip([*plots, *views], drawn, strict=True):
            one["data"][PNG] = picture
        for file, notebook in notebooks.items():
            # as nbformat writes it
            text = json.dumps(
                notebook, ensure_ascii=False, indent=1, sort_keys=True
            )
            replace_rows(file, [f"{text}\n".encode()])
    return len(plots) + len(views)


def draw(figures: Iterable[Any], views: Iterable[Any] = ()) -> list[str]:
    """Each figure, as plotly's JSON, and then each token view, as its payload, as a PNG in
    base64.
    """
    try:
        from PIL import Image  # noqa: F401 - for `_small`, before any plot is drawn
        from playwright.sync_api import sync_playwright
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise WorkbenchError(
            f"pictures of plots need playwright and Pillow: pip install -e '.[dev]' ({error})"
        ) from error
    if CHROMIUM is None:
        raise WorkbenchError(
            "pictures of plots need a Chromium on the path (Debian: apt install chromium)"
        )
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"]
        )
        tab = browser.new_page(viewport={"width": WIDTH, "height": TALL})
        tab.add_script_tag(content=get_plotlyjs())
        drawn = [
            _small(
                base64.b64decode(tab.evaluate(DRAW, [figure, *_size(figure)]))
            )
            for figure in figures
        ]
        for view in views:
            tab.set_content(page(view))
            drawn.append(_small(tab.locator("body").screenshot()))
        browser.close()
    return drawn


def _small(picture: bytes) -> str:
    """A PNG with a palette in base64, as a notebook stores it: a line break at its end."""
    from PIL import Image

    whole, out = Image.open(io.BytesIO(picture)), io.BytesIO()
    whole.convert("RGB").quantize(
        COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
    ).save(out, "PNG", optimize=True)
    return f"{base64.b64encode(out.getvalue()).decode()}\n"


def _size(figure: Any) -> tuple[int, int]:
    layout = figure.get("layout") or {}
    return int(layout.get("width") or WIDTH), int(
        layout.get("height") or HEIGHT
    )


def _read(file: Path) -> Any:
    try:
        notebook = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WorkbenchError(f"cannot read '{file}': {error}") from error
    if not isinstance(notebook, dict) or not isinstance(
        notebook.get("cells"), list
    ):
        raise WorkbenchError(f"'{file}' is no notebook: it has no cells")
    return notebook


def main(arguments: Sequence[str]) -> int:
    try:
        count = add_pictures([Path(name) for name in arguments])
    except WorkbenchError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{count} pictures were drawn", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
