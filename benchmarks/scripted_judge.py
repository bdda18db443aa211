"""A scripted judge: an OpenAI-compatible server on loopback, for tests and benchmarks.

A function of (task, elements of the prompt) gives each reply. Delays and failures are settings.
Requests are counted.

    with JudgeServer(script, faults=0.5, kinds=["500"], seed=1) as server:
        judge = endpoint(server.url, "scripted", backoff=0.01)

GET /count returns its counts.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from zlib import crc32

from workbench.judge.templates import Element, elements
from workbench.judge.wire import LABELS
from workbench.text.outline import MOST_POINTS
from workbench.types import WorkbenchError

if TYPE_CHECKING:
    from aiohttp import web

FAULTS = {
    "429": "refused for now: status 429 with the header Retry-After",
    "500": "status 500 with a page of HTML",
    "hang": "the right reply, after `hang` seconds",
    "reset": "the connection is cut",
    "garbage": "status 200 with random bytes that are called JSON",
    "empty": "an empty reply",
    "truncated": "the reply, cut off",
    "language": "a verdict in other words, and in German",
    "chatty": "the reply in the midst of other words",
}


@dataclass(frozen=True)
class Fault:
    """A script's value for a reply that should fail: a kind of `FAULTS`, and the correct reply."""

    kind: str
    text: str = ""


# a Response is sent unchanged
Script = Callable[[str, Sequence[Element]], "str | Fault | web.Response"]


def by_checksum(task: str, elements: Sequence[Element]) -> str:
    """Return a readable reply to any task, with labels and ratings by a checksum of the judged
    text.
    """

    def texts(tag: str) -> list[str]:
        return [element.text for element in elements if element.tag == tag]

    if task in ("extract", "single_pass"):
        parts = re.findall(r"[^.!?\n]+[.!?]?", texts("response")[0])
        sentences = [part.strip() for part in parts if any(map(str.isalnum, part))]
        return json.dumps({"sentences": [_sentence(task, text) for text in sentences]})
    if task in ("outline", "expand"):
        materials = next(element for element in elements if element.tag == "materials")
        # a point is the first words of a passage
        points = [
            " ".join(re.findall(r"\w+", one.text)[:5]) or "nothing"
            for one in materials.children[:MOST_POINTS]
        ]
        if task == "expand":
            answer = " ".join(f"{text} [{number}]." for number, text in enumerate(points, 1))
            return json.dumps({"answer": answer or "Nothing."})
        planned = [{"text": text, "passage": number} for number, text in enumerate(points, 1)]
        return json.dumps({"structure": _label(task, "".join(points)), "points": planned})
    if task == "inform":
        return json.dumps({"ratings": [_checksum(claim) % 5 + 1 for claim in texts("claim")]})
    if task == "checklist":
        response = texts("response")[0]
        return json.dumps({"labels": [_label(task, item + response) for item in texts("item")]})
    return json.dumps({"label": _label(task, "".join((*texts("claim"), *texts("response"))))})


def _sentence(task: str, text: str) -> dict[str, Any]:
    if task == "extract":
        return {"text": text, "claims": [text]}
    rating = _checksum(text) % 5 + 1
    claim = {"text": text, "label": _label(task, text), "informativeness": rating}
    return {"text": text, "claims": [claim]}


def _label(task: str, text: str) -> str:
    return LABELS[task][_checksum(text) % len(LABELS[task])]


def _checksum(text: str) -> int:
    return crc32(text.encode("utf-8", "replace"))


@dataclass
class JudgeServer:
    """A server on 127.0.0.1, used as a context manager; its address is `url`.

    `reply(task, elements)` is the script. It gives each reply, which is sent after `delay` seconds
    and `per_token` seconds for each word of prompt and reply. A share `faults` of the requests
    fails in one of `kinds`. The choice depends on the seed, the prompt and its number of earlier
    requests, not on the order of arrival. If a script raises, the server replies with status 400,
    and raises the error again when it is closed.

    Counts: `requests`, `tasks` (requests by task), `faulted` (failed requests by kind), `asked`
    (requests by prompt), `running` (requests under way) and `peak` (the maximum of `running`).
    `bodies` has the JSON of requests if `keep_bodies`.

    Raises:
        WorkbenchError: a kind of fault does not exist, or the port is taken (0 chooses a free one).
    """

    reply: Script = by_checksum
    delay: float = 0.0
    per_token: float = 0.0
    faults: float = 0.0
    kinds: Sequence[str] = tuple(FAULTS)
    seed: int = 0
    hang: float = 30.0
    key: str | None = None  # required bearer token
    port: int = 0
    usage: bool = True  # whether replies report token counts
    retry_after: str = "0"
    keep_bodies: bool = False
    requests: int = field(default=0, init=False)
    tasks: Counter[str] = field(default_factory=Counter, init=False)
    faulted: Counter[str] = field(default_factory=Counter, init=False)
    asked: Counter[str] = field(default_factory=Counter, init=False)
    bodies: list[dict[str, Any]] = field(default_factory=list, init=False)
    running: int = field(default=0, init=False)
    peak: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.kinds) - set(FAULTS)):
            raise WorkbenchError(
                f"no kind of fault '{unknown[0]}': choose from {', '.join(FAULTS)}"
            )
        self._mistake: Exception | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> JudgeServer:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        except BaseException:
            self._end_thread()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._end_thread()
        if self._mistake and kind is None:
            raise self._mistake

    def serve(self) -> None:
        """Print the address and serve until interrupted, as a separate process."""
        with self, suppress(KeyboardInterrupt):
            print(self.url, flush=True)
            threading.Event().wait()

    def _end_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        from aiohttp import web

        app = web.Application(client_max_size=64_000_000)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/count", self._count)
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise WorkbenchError(
                f"cannot serve at 127.0.0.1:{self.port} ({error}): name another port, or 0 for any"
            ) from None
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        await self._runner.cleanup()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _count(self, _: web.Request) -> web.Response:
        counts = {"requests": self.requests, "unique": len(self.asked), "peak": self.peak}
        return _json({**counts, "tasks": self.tasks})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            body = await request.json()
            if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
                return _json({"error": "no such key"}, 401)
            task = unquote(request.headers.get("X-Workbench-Task", ""))
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
        try:
            text = self.reply(task, elements(prompt))
        except Exception as error:  # the user's script
            self._mistake = error
            return _json({"error": f"the script failed: {error!r}"}, 400)
        if isinstance(text, Fault):
            kind, text = text.kind, text.text
        if kind:
            self.faulted[kind] += 1
        tokens = sum(_usage(prompt, text).values()) if isinstance(text, str) else 0
        await asyncio.sleep(self.hang if kind == "hang" else self.delay + self.per_token * tokens)
        if not isinstance(text, str):
            return text
        return (
            self._fault(request, kind, prompt, text, chance)
            if kind
            else self._completion(prompt, text)
        )

    def _fault(
        self, request: web.Request, kind: str, prompt: str, text: str, chance: random.Random
    ) -> web.StreamResponse:
        from aiohttp import web

        if kind == "reset":
            if request.transport:
                request.transport.abort()
            return web.Response()
        if kind in ("429", "500"):
            headers = {"Retry-After": self.retry_after} if kind == "429" else {}
            return web.Response(status=int(kind), text="<html>busy</html>", headers=headers)
        if kind == "garbage":
            return web.Response(body=chance.randbytes(200), content_type="application/json")
        broken = {
            "hang": text,
            "empty": "",
            "truncated": text[: chance.randrange(1, max(2, len(text)))],
            "language": "Die Aussage ist richtig: {'Urteil': 'richtig'}",
            "chatty": f"Sure! Here is my verdict:\n{text}\nI hope this helps. It is not wrong.",
        }
        return self._completion(prompt, broken[kind])

    def _completion(self, prompt: str, text: str) -> web.Response:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }
        usage = {"usage": _usage(prompt, text)} if self.usage else {}
        return _json({"object": "chat.completion", "choices": [choice], **usage})


def _usage(prompt: str, text: str) -> dict[str, int]:
    return {"prompt_tokens": len(prompt.split()), "completion_tokens": len(text.split())}


def _json(value: Any, status: int = 200) -> web.Response:
    from aiohttp import web

    return web.json_response(value, status=status)
