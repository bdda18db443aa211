"""Names on the hub, against a server on loopback that knows one model."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from workbench.util.hub import from_disk_or_hub, reach


class Hub(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        if "ada" in self.path:  # the client asks for its own things, too
            self.asked.append(self.path)
        known = self.path.split("?")[0] in ("/api/models/ada/kern", "/api/datasets/ada/facts")
        body = json.dumps(
            {"id": "ada/kern", "tags": [], "siblings": []}
            if known
            else {"error": "no such repository"}
        ).encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if not known:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    from huggingface_hub import constants

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    Hub.asked = []
    yield Hub.asked
    server.shutdown()
    server.server_close()


class Loader:
    """As a library's: from the hub alone, unless it is told that the files are here."""

    def __init__(self, *here: str) -> None:
        self.here, self.calls = here, 0

    def __call__(
        self, name: str, *, trust_remote_code: bool, local_files_only: bool = False, size: int = 1
    ) -> tuple[str, int]:
        assert trust_remote_code is False
        self.calls += 1
        if local_files_only and name not in self.here:
            raise ValueError("not in the cache")
        return name, size


def test_what_is_on_the_disk_is_not_asked_for(hub: list[str], tmp_path: Path) -> None:
    assert from_disk_or_hub(Loader("ada/kern"), "ada/kern", size=3) == ("ada/kern", 3)
    assert from_disk_or_hub(Loader(), str(tmp_path)) == (str(tmp_path), 1)
    assert hub == []


def test_a_known_name_is_asked_for_once_and_loaded(hub: list[str]) -> None:
    loader = Loader()
    assert from_disk_or_hub(loader, "ada/kern", size=2) == ("ada/kern", 2)
    assert (loader.calls, len(hub)) == (2, 1)
    reach("dataset", "ada/facts")
    assert hub[-1].startswith("/api/datasets/ada/facts")


def test_what_is_wrong_with_a_model_that_is_here_is_told_as_it_is(
    hub: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    def broken(name: str, **_: bool) -> None:
        raise ValueError("the tokenizer cannot be read")

    def out_of_memory(name: str, **_: bool) -> None:
        raise RuntimeError("out of memory")

    snapshot = tmp_path / "models--ada--kern" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (tmp_path / "models--ada--kern" / "refs").mkdir()
    (tmp_path / "models--ada--kern" / "refs" / "main").write_text("abc")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ValueError, match="the tokenizer cannot be read"):
        from_disk_or_hub(broken, "ada/kern")
    with pytest.raises(RuntimeError, match="out of memory"):
        from_disk_or_hub(out_of_memory, "ada/nobody")
    assert hub == []


def test_an_unknown_name_or_a_hub_out_of_reach_is_one_line(
    hub: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    loader = Loader()
    with pytest.raises(OSError, match="not available on the hub") as caught:
        from_disk_or_hub(loader, "ada/nobody")
    assert "\n" not in str(caught.value) and loader.calls == 1 and len(hub) == 1
    with pytest.raises(OSError):
        reach("dataset", "ada/kern")  # a model is no data set
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(OSError, match="not on this machine"):
        reach("model", "ada/kern")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    reach("model", "ada/kern")  # offline: the loader reports what is missing
