"""Access control of the inspector: its own host names and its own page; no uploads."""

import asyncio
from pathlib import Path

import pytest

from tests.helpers import Cli, examples, refusal, without
from tests.helpers.errors import raises_error
from workbench.inspector.guard import LARGEST, allowed, guard
from workbench.inspector.page import settings
from workbench.types import JsonObject

PORT = 7860
OWN = f"127.0.0.1:{PORT}"
JSON = {
    "host": OWN,
    "origin": f"http://{OWN}",
    "content-type": "application/json",
    "content-length": "2",
}


def ask(
    headers: dict[str, str] | list[tuple[str, str]],
    method: str = "GET",
    path: str = "/",
    kind: str = "http",
    names=(),
) -> tuple[int, dict[str, str]]:
    """Return the status and headers of a response; 200 if the request reaches the guarded app."""
    sent: list[JsonObject] = []

    async def behind(scope, receive, send) -> None:
        await send({"type": f"{kind}.response.start", "status": 200, "headers": []})

    async def receive() -> JsonObject:
        return {"type": f"{kind}.connect"}

    async def send(message) -> None:
        sent.append(message)

    pairs = headers.items() if isinstance(headers, dict) else headers
    raw = [(name.encode(), value.encode("latin-1")) for name, value in pairs]
    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "headers": raw,
        "server": ("127.0.0.1", PORT),
    }
    asyncio.run(_run(guard(behind, names), scope, receive, send))
    if sent[0]["type"] == "websocket.close":
        return 403, {}
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}


async def _run(app, *given) -> None:
    await app(*given)


@pytest.mark.parametrize("host", [OWN, f"localhost:{PORT}", f"[::1]:{PORT}", f"LocalHost:{PORT}"])
def test_own_host_names_are_allowed(host: str) -> None:
    assert ask({"host": host})[0] == ask({"host": host, "origin": f"http://{host}"})[0] == 200
    assert ask({**JSON, "host": host}, "POST", "/gradio_api/component_server/")[0] == 200


HOSTS = [
    "evil.example",
    f"evil.example:{PORT}",
    f"127.0.0.1.evil.example:{PORT}",
    f"evil.example@{OWN}",
    f"{OWN}@evil.example",
    "127.0.0.1",
    "localhost",
    "127.0.0.1:1",
    f"{OWN}0",
    f"{OWN}/",
    f"http://{OWN}",
    f"127.1:{PORT}",
    f"0.0.0.0:{PORT}",
    f"localhost.:{PORT}",
    f"::1:{PORT}",
    f"[::1]evil:{PORT}",
    "",
    ":",
    "[",
    "\xe9",
]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_other_host_names_are_refused_on_every_route(host: str, kind: str) -> None:
    for path in (
        "/",
        "/config",
        "/static/x.js",
        "/assets/x.js",
        "/gradio_api/info",
        "/gradio_api/queue/data",
        "/none",
    ):
        status, headers = ask({"host": host, "origin": f"http://{host}"}, path=path, kind=kind)
        assert status == 403 and not [name for name in headers if name.startswith("access-control")]
        assert ask({"host": host}, path=path, kind=kind)[0] == 403


ORIGINS = [
    "null",
    "http://evil.example",
    f"http://evil.example:{PORT}",
    "http://127.0.0.1:1",
    "http://localhost",
    "http://localhost:8888",
    f"https://127.0.0.1:{PORT}",
    f"file://127.0.0.1:{PORT}",
    f"127.0.0.1:{PORT}",
    f"http://127.0.0.1:{PORT}.evil.example",
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_other_origins_are_refused_without_cors_headers(origin: str) -> None:
    preflight = {"host": OWN, "origin": origin, "access-control-request-method": "POST"}
    for method, headers in (
        ("GET", {"host": OWN, "origin": origin}),
        ("OPTIONS", preflight),
        ("POST", {**JSON, "origin": origin}),
    ):
        status, answered = ask(headers, method, "/gradio_api/queue/join")
        assert status == 403 and not [
            name for name in answered if name.startswith("access-control")
        ]
    assert ask({"host": OWN, "origin": origin}, kind="websocket")[0] == 403


def test_embedding_is_refused_and_links_are_allowed() -> None:
    for site in ("cross-site", "same-site"):
        for what in ("iframe", "image", "script", "empty", "object"):
            assert ask({"host": OWN, "sec-fetch-site": site, "sec-fetch-dest": what})[0] == 403
        assert ask({"host": OWN, "sec-fetch-site": site})[0] == 403
        followed = {"host": OWN, "sec-fetch-site": site, "sec-fetch-dest": "document"}
        assert ask(followed)[0] == 200
        # a submitted form
        assert ask({**JSON, **followed}, "POST", "/gradio_api/queue/join")[0] == 403
    for site in ("same-origin", "none"):
        assert ask({"host": OWN, "sec-fetch-site": site, "sec-fetch-dest": "empty"})[0] == 200


@pytest.mark.parametrize(
    "path", "queue/join run/predict component_server component_server/ cancel reset".split()
)
def test_only_the_page_itself_can_post(path: str) -> None:
    path = f"/gradio_api/{path}"
    assert ask(JSON, "POST", path)[0] == 200
    assert ask({**JSON, "content-type": "application/json; charset=utf-8"}, "POST", path)[0] == 200
    assert ask(without(JSON, "origin"), "POST", path)[0] == 403
    for kind in (
        "multipart/form-data; boundary=x",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "",
    ):
        assert ask({**JSON, "content-type": kind}, "POST", path)[0] == 403
    assert ask({**JSON, "transfer-encoding": "chunked"}, "POST", path)[0] == 413
    for size in (str(LARGEST + 1), "-1", "x", "9" * 30):
        assert ask({**JSON, "content-length": size}, "POST", path)[0] == 413
    chunked = without(JSON, "content-length")
    assert ask({**chunked, "transfer-encoding": "chunked"}, "POST", path)[0] == 413


WRITING = examples("writing_requests")


@pytest.mark.parametrize(("method", "path"), WRITING)
def test_no_route_uploads_or_downloads_files(method: str, path: str) -> None:
    assert ask(JSON, method, f"/gradio_api/{path}")[0] == 404
    for prefix in "/ // /gradio_api/./ /gradio_api// /GRADIO_API/ /assets/../".split():
        assert ask(JSON, method, f"{prefix}{path}")[0] == 404


def test_allow_host_adds_names() -> None:
    names = allowed(["lab.example.org", "Box:8888"])
    for host in ("lab.example.org", "lab.example.org:8443", "box:8888", OWN):
        assert ask({"host": host}, names=names)[0] == 200
    for origin in ("https://lab.example.org", "http://lab.example.org:80", "https://box:8888"):
        # a proxy may put its own name into the Host
        assert ask({"host": OWN, "origin": origin}, names=names)[0] == 200
    for host in (
        "box",
        "box:1",
        "example.org",
        "sub.lab.example.org",
        "lab.example.org.evil.example",
    ):
        assert ask({"host": host}, names=names)[0] == 403


@pytest.mark.parametrize(
    "name", ["*", "*.example.org", "http://lab.example.org", "a b", "", "lab/x", "lab:port"]
)
def test_an_invalid_host_name_is_refused(name: str, tmp_path: Path, cli: Cli) -> None:
    with raises_error("not a host's name"):
        settings(None, tmp_path, 0, [name])
    command = f"inspect --runs {tmp_path} --no-browser --allow-host"
    assert "--allow-host" in refusal(cli(command, name))
