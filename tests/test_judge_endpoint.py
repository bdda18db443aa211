"""Endpoints with a local server: faults, limits, order, costs, threads and interrupts."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from benchmarks.scripted_judge import JudgeServer, by_checksum
from tests.helpers import examples, start_python, without
from tests.helpers.waiting import wait_for
from workbench.judge import BatchJudge, Element, endpoint, read, render
from workbench.judge.http import LARGEST, retry_after
from workbench.types import Cost, Failure, JsonObject, Prompt, Reply, WorkbenchError


def verify(number: int) -> Prompt:
    return render(
        "verify", question="Who?", passages=["Ada was born in Oslo."], claims=[f"Claim {number}."]
    )


def verify_all(count: int) -> list[Prompt]:
    return [verify(number) for number in range(count)]


def mixed(count: int) -> list[Prompt]:
    """Prompts of several tasks."""
    made = []
    for n in range(count):
        question, response = (
            f"Question {n}?",
            f"Ada {n} was born in Oslo. She may have lived in Rome.",
        )
        made += [
            verify(n),
            render("extract", question=question, response=response),
            render("single_pass", question=question, response=response),
            render(
                "inform",
                question=question,
                response=response,
                claims=[f"claim {n}", "another", f"{n}"],
            ),
            render("checklist", question=question, response=response, items=[f"item {n}", "Rome"]),
            render("outcome", question=question, response=response, answers=["Oslo"]),
        ]
    return made


def fast(server: JudgeServer, **options: Any) -> BatchJudge:
    return endpoint(server.url, "scripted", **{"timeout": 5.0, "backoff": 0.001, **options})


def failure(reply: Reply) -> Failure:
    assert reply.error is not None and reply.text is None
    return reply.error


def ask_one(answer: web.Response, **options: Any) -> tuple[Reply, JudgeServer]:
    """Send one prompt to a server that always returns `answer`."""
    with JudgeServer(reply=lambda task, found: _copy(answer)) as server:
        (reply,) = fast(server, retries=2, **options)([verify(0)])
    return reply, server


def _copy(response: web.Response) -> web.Response:
    return web.Response(body=response.body, status=response.status, headers=response.headers)


def test_replies_are_in_order_and_each_prompt_is_sent_once() -> None:
    prompts = [verify(number % 40) for number in range(100)]
    with JudgeServer() as server:
        judge = fast(server, concurrency=8)
        replies = judge(prompts)
        assert [read("verify", reply.text or "") for reply in replies] == [
            json.loads(str(by_checksum("verify", [Element("claim", f"Claim {n % 40}.")])))["label"]
            for n in range(100)
        ]
        assert server.requests == judge.totals.calls == 40
        assert server.peak <= 8
        assert set(server.asked.values()) == {1}
    assert sum((reply.cost for reply in replies[:40]), Cost()).calls == 40
    assert all(reply.cost == Cost(cached=1) for reply in replies[40:])
    assert judge.totals.cached == 60
    assert judge.totals.tokens_in == sum(len(prompt.text.split()) for prompt in prompts[:40])
    assert all(reply.cost.seconds > 0 for reply in replies[:40])


def test_request_bodies() -> None:
    with JudgeServer(keep_bodies=True, key="secret") as server:
        judge = fast(server, key="secret", max_new_tokens=99, extra={"top_p": 0.5, "seed": 7})
        prompts = mixed(1)
        judge(prompts)
        contents = [body.pop("messages") for body in server.bodies]
        expected = {"model": "scripted", "temperature": 0.0, "max_tokens": 99, "seed": 7}
        assert all(body == expected | {"top_p": 0.5} for body in server.bodies)
        assert {message["content"] for [message] in contents} == {one.text for one in prompts}
        assert server.tasks == Counter(prompt.task for prompt in prompts)
        fast(server, key="secret", extra={"max_completion_tokens": 5})([verify(9)])
        assert not {"max_tokens"} & set(server.bodies[-1])
    assert "secret" not in repr(judge) + str(judge.totals)


def test_with_a_third_of_faults_a_verdict_is_right_or_a_failure() -> None:
    prompts = mixed(40)
    with JudgeServer() as server:
        clean = fast(server)(prompts)
    with JudgeServer(faults=0.3, seed=3) as server:
        judge = fast(server, timeout=1.0)  # enough for a loaded machine
        replies = judge(prompts)
        wait_for(lambda: server.running == 0)
    assert all(reply.error is None for reply in clean) and len(replies) == len(prompts)
    right = sum(
        reply.text == other.text
        for reply, other in zip(replies, clean, strict=True)
        if reply.error is None
    )
    failed = Counter(failure(reply).kind for reply in replies if reply.error)
    assert right + failed.total() == len(prompts)
    assert set(server.faulted) == set(server.kinds)  # every kind of fault occurred
    assert 0 < failed.total() < 0.2 * len(prompts)
    assert server.requests == judge.totals.calls > len(prompts)
    assert sum(reply.cost.calls for reply in replies) == judge.totals.calls


def test_an_unreachable_server_is_given_up_early() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # no server listens
        port = taken.getsockname()[1]
        judge = endpoint(f"http://127.0.0.1:{port}", "m", retries=50, backoff=0.001, concurrency=1)
        first = judge(verify_all(3))
        assert [reply.cost.calls for reply in first] == [3, 0, 0]
    with JudgeServer(port=port) as server:  # the server is up now
        assert all(reply.error is None for reply in judge(verify_all(3)))
        assert server.requests == 3


@pytest.mark.parametrize(("status", "kind", "remedy"), examples("refusing_statuses"))
def test_refusals_are_not_retried(status: int, kind: str, remedy: str) -> None:
    reply, server = ask_one(
        web.Response(
            status=status,
            text="no",
            headers={"Location": "http://127.0.0.1:9/elsewhere"} if status == 308 else {},
        )
    )
    assert (failure(reply).stage, failure(reply).kind, failure(reply).raw) == ("judge", kind, "no")
    assert remedy in failure(reply).message
    assert str(status) in failure(reply).message
    assert server.requests == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [*examples("error_bodies"), ("[" * 100_000, "[…)"), ("word " * 1000, "…)")],
    ids=range(12),
)
def test_the_servers_error_message_is_shown(body: str, words: str) -> None:
    reply, _ = ask_one(web.Response(status=422, text=body))
    message = failure(reply).message
    assert words in message and len(message) < 300 and message.isprintable()


def test_parameters_that_a_model_refuses_are_replaced_or_left_out() -> None:
    def reply(task: str, found: Sequence[Element]) -> str | web.Response:
        for name, words in (
            ("max_tokens", "'max_tokens' is not supported, use 'max_completion_tokens'"),
            ("temperature", "'temperature' does not support 0"),
        ):
            if name in server.bodies[-1]:
                return web.json_response({"error": {"message": words}}, status=400)
        return by_checksum(task, found)

    with JudgeServer(reply=reply, keep_bodies=True) as server:
        judge = fast(server, max_new_tokens=99, concurrency=4)
        with pytest.warns(UserWarning, match="refuses temperature 0"):
            assert all(one.error is None for one in judge(verify_all(20)))
        assert server.requests == judge.totals.calls <= 20 + 2 * 4
        sent = without(server.bodies[-1], "messages")
        assert sent == {"model": "scripted", "max_completion_tokens": 99}
        # a chosen temperature is not left out
        (other,) = fast(server, temperature=0.5)([verify(0)])
        assert failure(other).kind == "refused" and "'temperature'" in failure(other).message


def body_of(content: str, finish: str = "stop") -> str:
    return f'{{"choices": [{{"message": {{"content": {content}}}, "finish_reason": "{finish}"}}]}}'


@pytest.mark.parametrize(
    ("status", "body", "kind", "most"),
    [
        (200, body_of("null"), "empty", 20),
        (200, body_of("[]"), "empty", 20),
        (200, body_of("5"), "broken", 20),
        (200, "<html>", "broken", 20),
        (200, body_of('"{"', "length"), "truncated", 8 + 3 + 8),
        (429, '{"error": {"code": "insufficient_quota"}}', "quota", 8),
        (402, "Insufficient Balance", "quota", 8),
        (403, "Your credit balance is too low", "quota", 8),
    ],
)
def test_a_server_without_usable_replies_is_given_up_early(
    status: int, body: str, kind: str, most: int
) -> None:
    with JudgeServer(reply=lambda *_: web.Response(status=status, text=body)) as server:
        replies = fast(server, concurrency=8)(verify_all(200))
    assert {failure(reply).kind for reply in replies} == {kind} and server.requests <= most
    assert "not sent" in failure(replies[-1]).message


@pytest.mark.parametrize("status", [408, 429, 503])
def test_temporary_errors_are_retried(status: int) -> None:
    reply, server = ask_one(web.Response(status=status, headers={"Retry-After": "0"}))
    assert failure(reply).kind == ("rate_limit" if status == 429 else "server")
    assert server.requests == 3
    assert reply.cost.calls == 3


def test_a_server_that_fails_during_a_batch_is_given_up() -> None:
    def reply(task: str, found: Sequence[Element]) -> str | web.Response:
        return web.Response(status=503) if server.requests > 100 else by_checksum(task, found)

    with JudgeServer(reply=reply) as server:
        replies = fast(server, retries=1, concurrency=4)(verify_all(1000))
        assert 90 <= sum(one.error is None for one in replies) <= 100
        assert server.requests <= 100 + 2 * (4 + 3 + 4)
        assert "not sent" in failure(replies[-1]).message
        assert replies[-1].cost.calls == 0


def test_one_refused_prompt_does_not_end_the_batch() -> None:
    def reply(task: str, found: Sequence[Element]) -> str | web.Response:
        return (
            web.Response(status=404) if "Claim 50." in found[-1].text else by_checksum(task, found)
        )

    with JudgeServer(reply=reply) as server:
        replies = fast(server, concurrency=2)(verify_all(100))
    assert [n for n, reply_ in enumerate(replies) if reply_.error] == [
        50
    ] and server.requests == 100


LABEL = r'"{\"label\": \"correct\"}"'


@pytest.mark.parametrize(
    ("body", "kind", "requests"),
    [
        ("[" * 200_000, "broken", 2),
        (" " * LARGEST, "broken", 2),
        ('{"choices": []}', "broken", 2),
        ('["correct"]', "broken", 2),
        (body_of('{"label": "correct"}'), "broken", 2),
        (body_of('[{"type": "image_url"}]'), "empty", 2),
        (body_of(LABEL, "length"), "truncated", 1),
        (body_of(f'"{"correct " * 100_000}"'), "too_long", 2),
        (body_of('"INCORRECT - a wrong date"'), "not_json", 2),
        (body_of(LABEL[:-1] + LABEL[1:]), "extra_text", 2),
    ],
    ids=range(10),
)
def test_bodies_and_replies_without_a_verdict(body: str, kind: str, requests: int) -> None:
    reply, server = ask_one(web.Response(text=body))
    assert failure(reply).kind == kind and server.requests == requests
    assert len(failure(reply).raw) <= 2000


@pytest.mark.parametrize(
    "message",
    examples("reply_messages"),
)
def test_the_reply_is_found_in_a_message_of_any_server(message: str) -> None:
    usage = '"usage": {"prompt_tokens": 1' + "0" * 400 + ', "completion_tokens": 3}'
    body = f'{{"choices": [{{"message": {message.replace("REPLY", LABEL)}}}], {usage}}}'
    reply, server = ask_one(web.Response(text=body))
    assert read("verify", reply.text or "") == "correct" and server.requests == 1
    assert reply.cost.tokens_in == -(-len(verify(0).text) // 4)  # estimated


def test_an_unreadable_reply_is_requested_again() -> None:
    seen: Counter[str] = Counter()

    def reply(task: str, found: Sequence[Element]) -> str:
        seen[found[-1].text] += 1
        return "Hmm." if seen[found[-1].text] == 1 else str(by_checksum(task, found))

    with JudgeServer(reply=reply) as server:
        judge = fast(server)
        assert all(one.error is None for one in judge(verify_all(5)))
        assert judge.totals.calls == 10
        assert {failure(one).kind for one in fast(server, reasks=0)(verify_all(10)[5:])} == {
            "not_json"
        }


def test_retry_after_is_respected_up_to_a_limit() -> None:
    with JudgeServer(faults=1.0, kinds=["429"], retry_after="86400") as server:
        assert (
            failure(fast(server, longest_wait=0.01, retries=3)([verify(0)])[0]).kind == "rate_limit"
        )
        assert server.requests == 4


@pytest.mark.parametrize(
    ("header", "seconds"),
    [*examples("retry_after"), ("9" * 400, float("inf"))],
)
def test_retry_after(header: str, seconds: float | None) -> None:
    assert retry_after(header, datetime(2026, 11, 21, 12, tzinfo=UTC)) == seconds


def test_inside_a_running_event_loop() -> None:
    async def notebook_cell() -> list[Reply]:
        return fast(server)(verify_all(10))

    with JudgeServer() as server:
        assert all(reply.error is None for reply in asyncio.run(notebook_cell()))


def test_an_error_in_the_callers_own_code_is_raised_and_leaves_nothing_running() -> None:
    def stop(*_: Any) -> None:
        raise RuntimeError("enough")

    with JudgeServer(delay=0.05) as server:
        with pytest.raises(RuntimeError, match="enough"):
            fast(server, concurrency=4).send(verify_all(50), stop)
        wait_for(lambda: "workbench-judge" not in {one.name for one in threading.enumerate()})
        assert server.requests <= 8


def test_threads_share_requests_for_equal_prompts_until_the_judge_is_closed() -> None:
    with JudgeServer(delay=0.05) as server, ThreadPoolExecutor(4) as pool:
        judge = fast(server)
        parts = [[verify(20 * thread + n) for n in range(30)] for thread in range(4)]
        batches = list(pool.map(judge, parts))
        assert server.requests == judge.totals.calls == 90
        assert max(server.asked.values()) == 1
        costs = [reply.cost.calls for batch in batches for reply in batch if not reply.error]
        assert sum(costs) == 90 and len(costs) == 120
        judge.close()
        assert failure(judge([verify(0)])[0]).kind == "stopped"


INTERRUPTED = """
import os, sys, threading
from workbench.judge import endpoint, render
prompts = [render("verify", question="q", passages=["p"], claims=[str(n)]) for n in range(100)]
try:
    endpoint(sys.argv[1], "m", concurrency=16)(prompts)
except KeyboardInterrupt:
    paths = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
    targets = [os.readlink(path) for path in paths if os.path.lexists(path)]
    sockets = [target for target in targets if target.startswith("socket:")]
    print([thread.name for thread in threading.enumerate()], len(sockets))
"""


def test_an_interrupt_leaves_no_threads_and_no_sockets() -> None:
    with JudgeServer(faults=1.0, kinds=["hang"], hang=3600) as server:
        process = start_python("-c", INTERRUPTED, server.url, stderr=subprocess.PIPE)
        wait_for(lambda: server.running == 16, 30)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert (out, err) == ("['MainThread'] 0\n", "")
        wait_for(lambda: server.running == 0)


@pytest.mark.parametrize(("url", "options", "message"), examples("wrong_endpoints"))
def test_invalid_settings_are_refused_before_any_request(
    url: str, options: JsonObject, message: str
) -> None:
    with pytest.raises(WorkbenchError, match=message) as raised:
        endpoint(url, **{"model": "m", **options})
    assert "\n" not in str(raised.value) and "sk-1" not in str(raised.value)
