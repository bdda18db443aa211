"""`workbench judge serve FILE.gguf`: llama.cpp's server on loopback.

A module with llama.cpp's interface and a real HTTP server stands in for the package; the last test
needs the package `xllamacpp` and a model (`WORKBENCH_GGUF`).
"""

import importlib.util
import json
import os
import signal
import urllib.request
from pathlib import Path

import pytest

from tests.helpers import Cli
from tests.helpers.served import listening, serving
from tests.helpers.waiting import wait_for
from workbench.judge import endpoint, render

PACKAGE = """
import json, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace


class CommonParams(SimpleNamespace):
    def __init__(self):
        threads = dict(n_threads=-1)
        super().__init__(
            model=SimpleNamespace(path=""), model_alias=set(), hostnames=["0.0.0.0"], port=1,
            ui=True, cors_origins="*", n_parallel=1, n_ctx=0, cpuparams=SimpleNamespace(**threads),
            cpuparams_batch=SimpleNamespace(**threads),
        )


class Server:
    def __init__(self, settings):
        if b"broken" in open(settings.model.path, "rb").read():
            raise RuntimeError("failed to load the model")
        described = {
            "path": settings.model.path, "names": sorted(settings.model_alias), "ui": settings.ui,
            "cors": settings.cors_origins, "context": settings.n_ctx // settings.n_parallel,
        }

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                body = json.dumps(described).encode()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)

        server = ThreadingHTTPServer((settings.hostnames[0], settings.port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.listening_address = f"http://{settings.hostnames[0]}:{settings.port}"
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "xllamacpp.py").write_text(PACKAGE)
    file = tmp_path / "small.Q4.gguf"
    file.write_bytes(b"GGUF and the rest")
    return file


@pytest.mark.slow
def test_a_gguf_file_is_served_on_loopback_until_an_interrupt(model: Path, tmp_path: Path) -> None:
    with serving(model, tmp_path, "--length", "1234") as (process, ready):
        url = ready["judge"]
        assert url.startswith("http://127.0.0.1:") and ready["judge_model"] == "small.Q4"
        assert ready["judge_option"] == "response_format=schema"
        with urllib.request.urlopen(f"{url.removesuffix('/v1')}/health") as answer:
            settings = json.load(answer)
        own = url.removesuffix("/v1")
        assert settings == {
            "path": str(model),
            "names": ["small.Q4"],
            "ui": False,
            "cors": own,
            "context": 1234,
        }
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        wait_for(lambda: not listening(url))


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_is_named_with_its_log(model: Path, tmp_path: Path) -> None:
    model.write_bytes(b"GGUF but broken")
    words = r"did not start.*failed to load the model.*judge-\d+\.log"
    with pytest.raises(AssertionError, match=words), serving(model, tmp_path):
        pass


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.gguf", None, "no file"),
        ("page.GGUF", b"<html>", "is not a GGUF file"),
        ("whole.gguf", b"GGUF", "pip install xllamacpp=="),
    ],
)
def test_missing_requirements_are_named_before_the_start(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
    name: str,
    content: bytes | None,
    message: str,
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "xllamacpp" else found(name)
    )
    if content is not None:
        (tmp_path / name).write_bytes(content)
    code, out, err = cli("judge", "serve", str(tmp_path / name))
    assert code == 2 and not out and message in err and "Traceback" not in err


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None or "WORKBENCH_GGUF" not in os.environ,
    reason="needs the package xllamacpp and a model's file in WORKBENCH_GGUF",
)
def test_a_real_model_gives_verdicts(tmp_path: Path) -> None:
    with serving(Path(os.environ["WORKBENCH_GGUF"]), tmp_path, "--length", "1024") as (_, ready):
        judge = endpoint(ready["judge"], ready["judge_model"], timeout=600)
        prompt = render(
            "verify",
            question="Where was Ada born?",
            passages=["Ada was born in Oslo."],
            claims=["Ada was born in Oslo."],
        )
        [reply] = judge([prompt])
        assert reply.text and json.loads(reply.text)["label"] == "correct", reply
