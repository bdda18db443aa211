"""A judge that `workbench judge serve` serves on this machine."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.helpers import ROOT, start_python
from workbench.judge import endpoint, render


@contextmanager
def serving(model: Path | str, cache: Path, *options: str) -> Iterator[tuple[Any, dict[str, str]]]:
    """Start the command; yield its process and the object that it prints when ready."""
    words = ("-m", "workbench.cli", "judge", "serve", model, "--port", 0, "--json", *options)
    places = [str(ROOT), str(cache), *filter(None, [os.environ.get("PYTHONPATH")])]
    paths = {"PYTHONPATH": os.pathsep.join(places), "XDG_CACHE_HOME": str(cache)}
    process = start_python(*words, env=paths, stderr=subprocess.PIPE)
    try:
        assert process.stdout and process.stderr
        line = process.stdout.readline()
        logs = cache.rglob("judge-*.log")
        assert line, (process.stderr.read(), *(path.read_text()[-5000:] for path in logs))
        yield process, json.loads(line)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def listening(url: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(url.rsplit(":", 1)[1].split("/")[0]))) == 0


def check_unreadable(ready: Mapping[str, str]) -> None:
    """Check that the tiny policy replies; its replies are unreadable, as it never saw a judge's
    prompt.
    """
    judge = endpoint(ready["judge"], ready["judge_model"], max_new_tokens=16, reasks=0, retries=0)
    [reply] = judge([render("outcome", question="Who?", answers=["Ada"], response="It is Ada.")])
    assert reply.text is None and reply.error and reply.error.kind != "connection"
