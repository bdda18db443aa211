"""Fixtures for browser tests of the inspector in Chromium, and hostile texts."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from notebooks.pictures import CHROMIUM
from tests.helpers import start_python
from tests.test_inspector import record
from tests.test_inspector_runs import record_logged
from workbench.retrieval import build_index
from workbench.types import Claim, Failure, Feedback, Passage, Question, Response, Reward, Verdict

for package, extra in (("gradio", "apps"), ("playwright", "dev")):
    # not imported: this takes seconds in every process that collects tests
    if find_spec(package) is None:
        pytest.skip(f"the {extra} extra is not installed", allow_module_level=True)

BROWSER = [  # marks of a browser test module
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no chromium on the path (Debian: apt install chromium)"
    ),
]
RUN = "a/first"
PROXY = "lab.example.org"  # an allowed host name

HIT = "window.hit=(window.hit||0)+1"
PAYLOADS = (
    f"<script>{HIT}</script>",
    f"</script><script>{HIT}</script>",
    f"<img src=x onerror={HIT}>",
    f"<svg><script>{HIT}</script></svg>",
    f"<iframe srcdoc='<script>parent.{HIT}</script>'></iframe>",
    f"<a href=javascript:{HIT}>x</a>",
    f"<details open ontoggle={HIT}>x</details>",
    f"<video><source onerror={HIT}></video>",
    f"<math><mtext><img src=x onerror={HIT}></mtext></math>",
    f"<style>@import 'http://evil.example/x.css';</style><img src=x onerror={HIT}>",
    "<link rel=stylesheet href=http://evil.example/x.css>",
    "<img src=http://evil.example/pixel.png>",
    "<meta http-equiv=refresh content='0;url=http://evil.example/'>",
    "<object data=http://evil.example/x></object>",
    "<base href=http://evil.example/>",
    "<form action=http://evil.example/><button>x</button></form>",
    "${" + HIT + "}",
    "{{{constructor.constructor('" + HIT + "')()}}}",
    f"\\u003cscript\\u003e{HIT}\\u003c/script\\u003e",
    f"&lt;script&gt;{HIT}&lt;/script&gt;",
    f'" onmouseover="{HIT}',
    f"[x](javascript:{HIT})",
    "![x](http://evil.example/pixel.png)",
    f"<template><script>{HIT}</script></template>",
    f'<noscript><p title="</noscript><img src=x onerror={HIT}>">',
    f"\u202e<b>reversed</b>\x00\u2028<script>{HIT}</script>",
)


def hostile(number: int, text: str) -> Feedback:
    """A row in which every text of a model, a judge or a file is the payload."""
    passage = Passage(f"p{number}", text, f"{text} and more {text}")
    question = Question(f"h{number}", text, (text,), text, (passage,), (text,))
    body = f"{text} A word. {text}"
    offsets = tuple(match.span() for match in re.finditer(r"\S+\s*|\s+", body))
    response = Response(
        f"{text}/{number}", question, body, f"h{number}", 0, 1, offsets=offsets, source="words"
    )
    failure = Failure(text, text, text, text)
    claims = (
        Claim(0, text, sentence=0, span=(0, len(text)), end=len(text), coverage=1.0),
        Claim(1, text, coverage=0.0),
        Claim(2, text, sentence=0),
    )
    evidence = (
        {"passage": f"p{number}", "span": [0, len(text)]},
        {"title": text, "text": text},
        {text: text},
    )
    verdicts = (
        Verdict("claim:0", "fact", "wrong", 0.1, 3, evidence, text),
        Verdict("claim:1", "fact", by=text, error=failure),
        Verdict("claim:2", "fact", text, by=text),
        Verdict("item:0", "checklist", text, by=text),
        Verdict(text, text, text, by=text),
    )
    rewards = {"rlfh": Reward(1.0, {text: 1.0}, ()), "truthrl": Reward(None, error=failure)}
    return Feedback(response, ((0, len(body)),), claims, verdicts, rewards, failure)


@dataclass
class Seen:
    """The browser's errors, dialogs and outside requests."""

    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def watch(self, page: Any) -> None:
        page.on("request", lambda request: self.requests.append(request.url))
        page.on(
            "console",
            lambda message: self.errors.extend([message.text] * (message.type == "error")),
        )
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", self.dismiss)

    def dismiss(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def outside(self) -> list[str]:
        local = ("data", "blob", "about", "file")
        return [
            url
            for url in self.requests
            if urlsplit(url).scheme not in local and urlsplit(url).hostname != "127.0.0.1"
        ]


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """The folder of the runs."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def address(root) -> Iterator[str]:
    """The inspector, started by its command, with a normal and a hostile run."""
    record(root / "a" / "first")
    record_logged(root / "logged")
    (root / "damaged").mkdir()
    (root / "damaged" / "rollouts.jsonl").symlink_to(root / "a" / "first" / "rollouts.jsonl")
    record(root / "hostile", [hostile(number, text) for number, text in enumerate(PAYLOADS)])
    pages = [
        json.dumps({"id": str(n), "title": text, "text": f"The payload {n}: {text}"})
        for n, text in enumerate(PAYLOADS)
    ]
    (root / "pages.jsonl").write_text("\n".join(pages))
    build_index("payloads", root / "pages.jsonl", root=root / "indexes")
    words = f"apps/reward_inspector.py --no-browser --allow-host {PROXY} --runs".split()
    env = {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
    server = start_python(*words, root, env=env, stderr=subprocess.DEVNULL)
    assert server.stdout
    try:
        line = server.stdout.readline()
        assert line.startswith("reward inspector: http://127.0.0.1:"), line
        yield line.split(": ", 1)[1].strip()
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def shots(tmp_path_factory) -> Path:
    """The folder of screenshots: WORKBENCH_SCREENSHOTS, or a temporary one."""
    folder = Path(os.environ.get("WORKBENCH_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def page(browser, address, seen) -> Iterator[Any]:
    """A new page with the worked example. After the test it must have no outside request, error or
    dialog."""
    found = browser.new_page(viewport={"width": 1280, "height": 900})
    found.set_default_timeout(15000)
    seen.watch(found)
    found.goto(address)
    found.wait_for_selector("#inspect-view .tv-t")
    yield found
    hit = found.evaluate("window.hit || 0")
    found.close()
    assert (seen.outside(), seen.errors, seen.dialogs, hit) == ([], [], [], 0)


FIXTURES = (address, browser, page, root, seen, shots)  # a test module assigns them to these names


def tab(page: Any, name: str) -> None:
    """Open a tab, from the menu on a narrow page."""
    found = page.get_by_role("tab", name=name, exact=True)
    if found.count() and found.first.is_visible():
        found.first.click()
    else:
        page.locator(".overflow-menu > button").first.click()
        page.locator(".overflow-dropdown button", has_text=name).click()


def choose_run(page: Any, name: str) -> None:
    """Select a run in the Runs tab, and wait for its rollouts or its note."""
    page.locator(f"#runs-view tr[data-run='{name}'] .wb-run-name").click()
    page.wait_for_selector(f"#runs-view tr[data-run='{name}'].tv-row-on")
    page.wait_for_selector("#runs-view .wb-busy:not([aria-busy=true])", state="attached")


def token(page: Any, text: str, view: str = "#inspect-view") -> Any:
    return (
        page.locator(f"{view} .tv-t").filter(has_text=re.compile(rf"^\s*{re.escape(text)}$")).first
    )


def big(page: Any, view: str = "#inspect-view") -> str:
    return page.locator(f"{view} .tv-big").inner_text()
