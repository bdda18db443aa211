"""The script and style of the token view, and a self-contained page for one response."""

import base64
import hashlib
from functools import cache
from html import escape
from pathlib import Path

from workbench.inspector.token_view.payload import as_json
from workbench.methods import METHODS
from workbench.types import CLAIM_LABELS, LACKING, JsonMapping
from workbench.verdicts.local import LIMITS

HERE = Path(__file__).parent
PICTURES = "WORKBENCH_PICTURES"  # environment variable: draw a picture of every view in a notebook
VIEW = "workbench.token_view"  # key of the payload in the metadata of a notebook's output
SCRIPTS = ("words.js", "token_view.js", "panels.js", "claims.js", "view.js")

# an exported page follows the reader's colour scheme: the dark class is set before drawing
_START = (
    'if (matchMedia("(prefers-color-scheme: dark)").matches)'
    ' document.documentElement.classList.add("dark");\n'
    'tokenView(document.getElementById("view")).update(JSON.parse(document.getElementById("data").textContent));'
)
_PAGE_STYLE = """
html { background: #f5f6f8; } html.dark { background: #101317; color-scheme: dark; }
body { margin: 0 auto; padding: 24px clamp(12px, 4vw, 40px); max-width: 1180px; }
"""


@cache
def script() -> str:
    """Return the token view's JavaScript, which defines `tokenView(root, options)`.

    This function draws into the HTML element `root`. It returns an object whose method
    `update(data)` shows a response, with the result of `payload` as `data`.
    """
    code = "\n".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    constants = {
        "NAMES": {name: method.title for name, method in METHODS.items()},
        "PART_WORDS": {name: dict(method.parts) for name, method in METHODS.items()},
        "LACKING": LACKING,
        "LOCAL_LIMITS": LIMITS,
        "CLAIM_LABELS": CLAIM_LABELS,
    }
    lines = (f"const {name} = {as_json(value)};\n" for name, value in constants.items())
    return "".join(lines) + code


@cache
def style() -> str:
    """Return the style sheet of the token view."""
    return (HERE / "token_view.css").read_text(encoding="utf-8")


def page(data: JsonMapping) -> str:
    """Return a self-contained HTML page that shows a response.

    The page's content security policy allows its own script and style, but no network access.

    Args:
        data: the response, as a result of `payload`.
    """
    code = f"(() => {{\n{script()}\n{_START}\n}})();"
    css = style() + _PAGE_STYLE
    policy = (
        f"default-src 'none'; script-src '{_hash(code)}'; style-src '{_hash(css)}'; base-uri"
        " 'none'; form-action 'none'"
    )
    title = escape(str(data["question"]) or "response")[:120]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title} · rewards</title>\n<style>{css}</style>\n</head>\n<body>\n"
        '<div id="view"></div>\n'
        f'<script type="application/json" id="data">{as_json(data)}</script>\n'
        f"<script>{code}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
