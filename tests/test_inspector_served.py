"""The served inspector, and requests from other origins."""

import json
import subprocess
import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from tests.helpers.browsing import FIXTURES, PROXY, RUN

address, root = FIXTURES[0], FIXTURES[3]
pytestmark = pytest.mark.slow

ROW = "tarven/1/0"
STORED = f"/gradio_api/run/predict?run={RUN}&id={ROW}"
ROUTES = (
    "/",
    "/compare",
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
    """Send one request with these headers and the server's own host name; None leaves it out."""
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
    """The page's requests for a stored row and for labels."""
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


def test_the_page_is_served_under_its_own_host_names(address: str, calls: dict[str, bytes]) -> None:
    port = urlsplit(address).port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", PROXY):
        found = {path: ask(address, "GET", path, host=host)[0] for path in ROUTES}
        # no run of the folder is evaluated, so none can be compared
        assert found == {**dict.fromkeys(ROUTES, 200), "/none": 404, "/compare": 400}
        for path, body in calls.items():
            status, _, output = ask(address, "POST", path, body, host=host, origin=f"http://{host}")
            assert status == 200 and (ROW if path == STORED else "error") in output.decode()


def test_files_and_bodies_of_unknown_size_are_refused(
    address: str, calls: dict[str, bytes]
) -> None:
    for path in ("/gradio_api/file=", "/gradio_api/./file=", "/GRADIO_API/file=", "/file="):
        status, _, output = ask(address, "GET", f"{path}/etc/hostname")
        assert status == 404 and b"the inspector has no such page" in output
    origin = {"origin": address.rstrip("/"), "transfer_encoding": "chunked"}
    for path, body in calls.items():
        chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        assert ask(address, "POST", path, chunks, **origin)[0] == 413


def test_no_other_name_or_origin_reads_a_stored_run(address: str, calls: dict[str, bytes]) -> None:
    """A page of another origin, and one whose name resolves to this machine (DNS rebinding)."""
    evil = f"evil.example:{urlsplit(address).port}"
    others = ({"host": evil}, {"origin": "http://evil.example"}, {"sec_fetch_site": "same-site"})
    for headers in ({"host": evil, "origin": f"http://{evil}"}, *others):
        found = [ask(address, "GET", path, None, **headers) for path in ROUTES]
        found += [ask(address, "POST", path, body, **headers) for path, body in calls.items()]
        for status, answered, text in found:
            cors = [name for name in answered if name.startswith("access-control")]
            assert (status, cors) == (403, []) and len(text) < 200


COUNT_STUBS = """
import gc, sys
opened = []
sys.addaudithook(lambda event, args: event == "open" and opened.append(str(args[0])))
{0}
import gradio
assert gc.isenabled() and gradio.Button("a").click
print(sum(path.endswith(".pyi") for path in opened))
"""


@pytest.mark.parametrize(
    ("first", "reads"),
    [
        ("", True),
        ("from workbench.inspector.import_gradio import import_gradio; import_gradio()", False),
    ],
)
def test_gradio_is_imported_without_its_stub_files(first: str, reads: bool) -> None:
    code = COUNT_STUBS.format(first)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (int(done.stdout) > 0) == reads
