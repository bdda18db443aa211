"""A judge on loopback: an OpenAI-compatible server with declared replies, delays and seeded faults, which counts every request.

In a test:  with JudgeServer(faults=0.3, seed=1) as server: judge = endpoint(server.url, "scripted")
As a process of its own:  python tests/judge_server.py --delay 0.05   (prints its address; GET /count gives its counts)
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from aiohttp import web

from workbench.judge import LABELS, Element, elements

FAULTS = ("429", "500", "hang", "reset", "garbage", "no_choices", "empty", "truncated", "language", "length", "chatty")
Script = Callable[[str, Sequence[Element]], str | web.Response]  # a Response is sent as it is


def scripted(task: str, found: Sequence[Element]) -> str:
    """A reply that follows from the elements alone: labels and ratings by a checksum of what is judged."""
    texts = {tag: [one.text for one in found if one.tag == tag] for tag in ("response", "claim", "item", "answer")}
    if task in ("extract", "single_pass"):
        sentences = [sentence.strip() for sentence in re.findall(r"[^.!?\n]+[.!?]?", texts["response"][0])]
        return json.dumps({"sentences": [_sentence(task, text) for text in sentences if any(map(str.isalnum, text))]})
    if task == "inform":
        return json.dumps({"ratings": [_rating(claim) for claim in texts["claim"]]})
    if task == "checklist":
        return json.dumps({"labels": [_label(task, item + texts["response"][0]) for item in texts["item"]]})
    return json.dumps({"label": _label(task, "".join((*texts["claim"], *texts["response"])))})


def _sentence(task: str, text: str) -> dict[str, Any]:
    if task == "extract":
        return {"text": text, "claims": [text]}
    return {"text": text, "claims": [{"text": text, "label": _label(task, text), "informativeness": _rating(text)}]}


def _label(task: str, text: str) -> str:
    return LABELS[task][crc32(text.encode("utf-8", "replace")) % len(LABELS[task])]


def _rating(text: str) -> int:
    return crc32(text.encode("utf-8", "replace")) % 5 + 1


@dataclass
class JudgeServer:
    """`reply(task, elements)` gives the text; a share `faults` of the requests goes wrong in one of `kinds`.

    Which ones is decided by the seed, the prompt and how often it was asked before, whatever the order of arrival.
    `counts` has the requests, `tasks` those by task, `faulted` those that went wrong by kind, `asked` each prompt's number of
    requests, `peak` the most that were open at a time.
    """

    reply: Script = scripted
    delay: float = 0.0
    faults: float = 0.0
    kinds: Sequence[str] = FAULTS
    seed: int = 0
    hang: float = 30.0
    key: str | None = None
    port: int = 0
    usage: bool = True
    retry_after: str = "0"
    counts: Counter[str] = field(default_factory=Counter)
    tasks: Counter[str] = field(default_factory=Counter)
    faulted: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keep_bodies: bool = False
    peak: int = 0
    running: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> int:
        return self.counts["requests"]

    def __enter__(self) -> JudgeServer:
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self.serve(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(10), "the test server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(10)
        self._loop.close()

    async def serve(self, ready: threading.Event | None = None) -> None:
        app = web.Application(client_max_size=64_000_000)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/count", self._count)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port)
        await site.start()
        self.port = runner.addresses[0][1]
        if ready:
            ready.set()
            await self._stopped.wait()
        else:
            print(self.url, flush=True)
            await asyncio.Event().wait()
        await runner.cleanup()
        await _cancel_all()

    async def _count(self, _: web.Request) -> web.Response:
        counts = {**self.counts, "unique": len(self.asked), "peak": self.peak}
        return web.json_response({**counts, "tasks": self.tasks, "faults": self.faulted})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self.counts["requests"] += 1
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            body = await request.json()
            if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
                return web.json_response({"error": "no such key"}, status=401)
            task = request.headers.get("X-Workbench-Task", "")
            self.tasks[task] += 1
            if self.keep_bodies:
                self.bodies.append(body)
            return await self._answer(request, task, body["messages"][-1]["content"])
        finally:
            self.running -= 1

    async def _answer(self, request: web.Request, task: str, prompt: str) -> web.StreamResponse:
        chance = random.Random(f"{self.seed}/{self.asked[prompt]}/{crc32(prompt.encode())}")
        self.asked[prompt] += 1
        kind = chance.choice(self.kinds) if chance.random() < self.faults else None
        if kind:
            self.faulted[kind] += 1
        await asyncio.sleep(self.hang if kind == "hang" else self.delay)
        text = self.reply(task, elements(prompt))
        if isinstance(text, web.Response):
            return text
        if kind is None:
            return self._completion(prompt, text)
        return self._fault(request, kind, prompt, text, chance)

    def _fault(self, request: web.Request, kind: str, prompt: str, text: str, chance: random.Random) -> web.StreamResponse:
        if kind == "reset":
            if request.transport:
                request.transport.abort()
            return web.Response()
        if kind in ("429", "500"):
            headers = {"Retry-After": self.retry_after} if kind == "429" else {}
            return web.Response(status=int(kind), text="<html>busy</html>", headers=headers)
        if kind == "garbage":
            return web.Response(body=chance.randbytes(200), content_type="application/json")
        if kind == "no_choices":
            return web.json_response({"error": {"message": "overloaded"}})
        broken = {
            "hang": text,  # late, but the right reply
            "empty": "",
            "truncated": text[: chance.randrange(1, len(text))],
            "language": "Die Aussage ist richtig: {'Urteil': 'richtig'}",
            "length": self._wrong_length(text),
            "chatty": f"Sure! Here is my verdict:\n{text}\nI hope this helps. It is not wrong.",
        }
        return self._completion(prompt, broken[kind])

    @staticmethod
    def _wrong_length(text: str) -> str:
        (key, value), *_ = json.loads(text).items()
        return json.dumps({key: [*value, *value[:1], "extra"] if isinstance(value, list) else [value, value]})

    def _completion(self, prompt: str, text: str) -> web.Response:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(prompt.split()), "completion_tokens": len(text.split())}
        return web.json_response({"object": "chat.completion", "choices": [choice], **({"usage": usage} if self.usage else {})})


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until something that another process or thread does has happened."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.005)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, kind, default in (("port", int, 0), ("delay", float, 0.0), ("faults", float, 0.0), ("seed", int, 0)):
        parser.add_argument(f"--{name}", type=kind, default=default)
    parser.add_argument("--hang", type=float, default=30.0)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(JudgeServer(**vars(parser.parse_args())).serve())


if __name__ == "__main__":
    main()
