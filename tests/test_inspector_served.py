"""The inspector as it is served, and pages of other origins that try its doors: by plain HTTP,
and in a real Chromium.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.helpers.browsing import BROWSER, CHROMIUM, FIXTURES, PROXY, RUN

address, root = FIXTURES[0], FIXTURES[3]
pytestmark = pytest.mark.slow
in_chromium = BROWSER[1]

ROW = "tarven/1/0"
STORED = f"/gradio_api/run/predict?run={RUN}&id={ROW}"
ROUTES = (
    "/",
    "/config",
    "/theme.css",
    "/gradio_api/info",
    "/gradio_api/queue/status",
    "/gradio_api/startup-events",
    "/none",
)


def ask(
    address: str, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """One request, with no header but those that are given and the server's own name; None
    leaves that out.
    """
    given = {"host": urlsplit(address).netloc, "content_type": "application/json"} | headers
    connection = HTTPConnection("127.0.0.1", urlsplit(address).port or 80, timeout=20)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in given.items():
        connection.putheader(name.replace("_", "-"), value)
    if body is not None:
        connection.putheader("content-length", str(len(body)))
    connection.endheaders(body)
    reply = connection.getresponse()
    found = reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
    connection.close()
    return found


@pytest.fixture(scope="module")
def calls(address: str) -> dict[str, bytes]:
    """What the page posts to have a stored row, and to have labels worked out."""
    config = json.loads(ask(address, "GET", "/config")[2])
    load = next(
        one["id"]
        for one in config["dependencies"]
        if any(event == "load" for _, event in one["targets"])
    )
    what_if = next(
        one["id"] for one in config["components"] if one["props"].get("elem_id") == "what-if-view"
    )
    server = {
        "data": {"key": "none"},
        "component_id": what_if,
        "fn_name": "what_if",
        "session_hash": "s",
    }
    stored = {"data": [], "fn_index": load, "session_hash": "s"}
    return {
        STORED: json.dumps(stored).encode(),
        "/gradio_api/component_server/": json.dumps(server).encode(),
    }


def test_the_page_is_served_under_its_own_names(address: str, calls: dict[str, bytes]) -> None:
    port = urlsplit(address).port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", PROXY):
        assert [ask(address, "GET", path, host=host)[0] for path in ROUTES] == [200] * 6 + [404]
        for path, body in calls.items():
            status, _, told = ask(address, "POST", path, body, host=host, origin=f"http://{host}")
            assert status == 200 and (ROW if path == STORED else "error") in told.decode()


def test_no_other_name_or_origin_reads_a_stored_run(address: str, calls: dict[str, bytes]) -> None:
    port = urlsplit(address).port
    rebound: dict[str, Any] = {
        "host": f"evil.example:{port}",
        "origin": f"http://evil.example:{port}",
    }
    others: tuple[dict[str, Any], ...] = (
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:1"},
        {"origin": "null"},
        {"sec_fetch_site": "same-site"},
    )
    for headers in (rebound, {"host": rebound["host"]}, *others):
        for path in ROUTES:
            status, answered, told = ask(address, "GET", path, **headers)
            assert (status, [name for name in answered if name.startswith("access-control")]) == (
                403,
                [],
            ) and len(told) < 200
        for path, body in calls.items():
            status, answered, told = ask(address, "POST", path, body, **headers)
            assert (status, [name for name in answered if name.startswith("access-control")]) == (
                403,
                [],
            ) and len(told) < 200
    assert ask(address, "POST", STORED, calls[STORED])[0] == 403  # no page at all


TRIES = """async ([base, calls]) => {
    const tried = [];
    const post = (kind, mode) => ([path, body]) =>
        [path, {method: "POST", body, mode, headers: {"Content-Type": kind}}];
    const asked = [["config", {}], ["", {}],
                   ...Object.entries(calls).map(post("application/json", "cors")),
                   ...Object.entries(calls).map(post("text/plain", "no-cors"))];
    for (const [path, how] of asked) {
        try {
            const reply = await fetch(new URL(path, base), how);
            tried.push([path, reply.status, (await reply.text()).slice(0, 4000)]);
        } catch (error) { tried.push([path, 0, ""]); }
    }
    return tried;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, in which a foreign name leads to this machine."""
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox", "--host-resolver-rules=MAP rebound.example 127.0.0.1"]
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@in_chromium
def test_a_name_that_was_made_to_lead_here_reads_nothing(
    browser: Any, address: str, calls: dict[str, bytes]
) -> None:
    """DNS rebinding: the page is of the very origin that it asks, so nothing but the inspector
    itself can refuse it.
    """
    rebound = f"http://rebound.example:{urlsplit(address).port}/"
    found = browser.new_page()
    # whatever is answered, a page of this origin is open, as one that its own server gave before
    # would be
    found.goto(rebound)
    assert found.evaluate("location.origin") == rebound.rstrip("/") and not found.query_selector(
        "#inspect-view"
    )
    tried = found.evaluate(TRIES, [rebound, {path: body.decode() for path, body in calls.items()}])
    assert len(tried) == 6 and all(
        status == 403 and "tarven" not in text.lower() for _, status, text in tried
    )
    found.goto(address)  # and the page itself is there
    found.wait_for_selector("#inspect-view .tv-t")
    found.close()
