"""A loopback server with the hub's API for creating a repository and uploading files."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from workbench.types import JsonObject

# tokens: of "ada", who may write "ada/…", and of a user without write access
WRITER, READER = "hf_writer", "hf_reader"


@dataclass
class Shelf:
    """One repository."""

    private: bool
    files: dict[str, bytes] = field(default_factory=dict)


@dataclass
class Hub:
    """The server's repositories, received requests, and whether it accepts files."""

    url: str = ""
    repositories: dict[str, Shelf] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    takes: bool = True


@contextmanager
def serving() -> Iterator[Hub]:
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def logged_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Replace the hub by such a server, with "ada" logged in."""
    from huggingface_hub import constants

    with serving() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", WRITER)
        yield hub


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def do_GET(self) -> None:
        path = self._path()
        name = path.removeprefix("/api/").removeprefix("models/").removesuffix("/auth-check/write")
        shelf = self.hub.repositories.get(name)
        if shelf is None:
            self._answer(404, {"error": "Repository not found"}, "RepoNotFound")
        elif path.endswith("/auth-check/write"):
            self._answer(
                *(
                    (200, {})
                    if self._may_write(name)
                    else (403, {"error": "You may not write here"})
                )
            )
        else:
            files = [{"rfilename": file} for file in shelf.files]
            self._answer(200, {"id": name, "private": shelf.private, "tags": [], "siblings": files})

    def do_POST(self) -> None:
        path, body = self._path(), self.rfile.read(int(self.headers["Content-Length"]))
        if path == "/api/repos/create":
            self._create(json.loads(body))
        elif path == "/api/validate-yaml":
            self._answer(200, {"errors": [], "warnings": []})
        elif "/preupload/" in path:
            files = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                for file in json.loads(body)["files"]
            ]
            self._answer(200, {"files": files})
        else:
            self._commit(
                path.removeprefix("/api/models/").removesuffix("/commit/main"), body.splitlines()
            )

    def _create(self, asked: JsonObject) -> None:
        name = f"{asked['organization']}/{asked['name']}"
        if not self._may_write(name):
            self._answer(
                403,
                {
                    "error": (
                        f'You may not create a model under the namespace "{asked["organization"]}"'
                    )
                },
            )
            return
        address = f"{self.hub.url}/{name}"
        if name in self.hub.repositories:
            self._answer(409, {"error": "You already created this model repo", "url": address})
            return
        self.hub.repositories[name] = Shelf(
            asked.get("visibility") == "private", {".gitattributes": b""}
        )
        self._answer(200, {"url": address})

    def _commit(self, name: str, lines: list[bytes]) -> None:
        if not (self.hub.takes and self._may_write(name)):
            self._answer(413, {"error": "Storage limit reached"})
            return
        for line in map(json.loads, lines):
            if line["key"] == "file":
                self.hub.repositories[name].files[line["value"]["path"]] = base64.b64decode(
                    line["value"]["content"]
                )
        self._answer(
            200, {"commitUrl": f"{self.hub.url}/{name}/commit/{'0' * 40}", "commitOid": "0" * 40}
        )

    def _may_write(self, name: str) -> bool:
        return self.headers.get("Authorization") == f"Bearer {WRITER}" and name.startswith("ada/")

    def _path(self) -> str:
        path = self.path.split("?")[0]
        self.hub.asked.append(f"{self.command} {path}")
        return path

    def _answer(self, status: int, body: JsonObject, code: str = "") -> None:
        output = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(output)))
        if "error" in body:
            self.send_header("X-Error-Message", body["error"])
        if code:
            self.send_header("X-Error-Code", code)
        self.end_headers()
        self.wfile.write(output)

    def log_message(self, *_: Any) -> None: ...
