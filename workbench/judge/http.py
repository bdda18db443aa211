"""Send one request to a chat-completions server, and return its text or its failure."""

import asyncio
import json
import re
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal

from workbench.judge.address import Address, redacted
from workbench.judge.wire import MORE_TOKENS, clip, one_line
from workbench.types import Cost, Failure, JsonMapping, Prompt, Reply

if TYPE_CHECKING:
    import aiohttp

# bytes of a body that are read: more than the longest valid reply with all characters escaped
LARGEST = 2_000_000
RETRIED = (408, 409, 429)  # status codes after which a prompt is sent again; also all from 500
MOST_TOKENS = 1_000_000_000  # of a request; a server that reports more is wrong
CHARACTERS = 4  # of a token, if the server does not count tokens
WORDS = 200  # most characters of a server's own message in an error message
# text of a refusal that a retry does not change; "quota" alone may mean a limit per minute
_NO_QUOTA = re.compile(
    r"insufficient[ _](?:quota|balance|credit|funds)|billing_|credit balance", re.I
)
# the message in an error, as in {"error": {"message": "…"}} or {"detail": [{"msg": "…"}]}
_MESSAGE = re.compile(
    r'"(?:error|message|detail|msg)"\s*:\s*("(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))+")'
)
_QUOTA = ("quota", "add credit to the key's account, or name another key (--api-key-env NAME)")
_REMEDIES = {
    401: ("auth", "name a valid API key with --api-key-env NAME"),
    402: _QUOTA,
    403: ("auth", "this API key may not use this model: name another key or model"),
    404: ("not_found", "check the address (it usually ends in /v1) and the name of the model"),
    413: ("refused", "the prompt is too long for the server"),
}


@dataclass(frozen=True)
class Answer(Reply):
    """The reply to one request, and whether the prompt may be sent again.

    Attributes:
        again: why the prompt may be sent again: "retry" after an error, "reask" after an unusable
            reply; None: it may not.
        wait: seconds that the server asks to wait before a retry.
        absent: True if the server did not accept the connection.
        tokens: the log-probabilities of the reply's tokens, as the server returns them.
    """

    again: Literal["retry", "reask"] | None = None
    wait: float | None = None
    absent: bool = False
    tokens: Any = None


def _failed(kind: str, message: str, raw: str = "", **about: Any) -> Answer:
    return Answer(None, Failure("judge", kind, message, clip(raw)), **about)


async def post(
    session: "aiohttp.ClientSession", server: Address, prompt: Prompt, body: JsonMapping
) -> Answer:
    """Send one request and return its outcome. Secrets in the response are masked."""
    import aiohttp

    headers = {"Content-Type": "application/json", "X-Workbench-Task": prompt.task}
    data, start = json.dumps(body).encode(), time.perf_counter()
    try:
        # redirects are not followed, because the other server would get the key
        async with session.post(
            server.url, data=data, headers=headers, allow_redirects=False
        ) as response:
            answer = await _read_response(response, prompt, server)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        answer = _unanswered(server, error, session.timeout.total)
    seconds = time.perf_counter() - start
    return replace(answer, cost=replace(answer.cost, calls=1, seconds=seconds))


async def _read_response(
    response: "aiohttp.ClientResponse", prompt: Prompt, server: Address
) -> Answer:
    try:
        body = await response.content.readexactly(LARGEST)
    except asyncio.IncompleteReadError as whole:
        body = whole.partial
    raw = server.scrub(body[:8000].decode("utf-8", "replace"))
    if response.status >= 300:
        target = redacted(server.scrub(response.headers.get("Location", "")))
        wait = retry_after(response.headers.get("Retry-After", ""))
        return _refusal(response.status, raw, target, wait)
    if len(body) == LARGEST:
        return _failed("broken", f"the response has {LARGEST:,} bytes or more", raw, again="reask")
    return _read_completion(body, raw, prompt, server)


def _refusal(status: int, raw: str, target: str, wait: float | None) -> Answer:
    """Return the outcome for an error status, with the server's own message.

    Args:
        status: the HTTP status.
        raw: the body of the response.
        target: the address of a redirect, or "".
        wait: the seconds of the Retry-After header, if there is one.
    """
    words = server_message(raw)
    problem = f"the server answered {status}{words and f' ({words})'}"
    quota = status in (403, 429) and _NO_QUOTA.search(raw)
    if not quota and (status in RETRIED or status >= 500):
        kind = "rate_limit" if status == 429 else "server"
        return _failed(kind, problem, raw, again="retry", wait=wait)
    kind, remedy = _REMEDIES.get(status, ("refused", "the server refuses this request"))
    kind, remedy = _QUOTA if quota else (kind, remedy)
    remedy = f"the server moved to {target}: give that address" if target else remedy
    return _failed(kind, f"{problem}: {remedy}"[:500], raw)


def server_message(body: str) -> str:
    """Return the error message in the body of a server's response, on one line.

    If no field such as "message" is found, the result is the whole body; for HTML, it is "". A
    message is shortened to 200 characters (`WORDS`).
    """
    found = _MESSAGE.search(body)
    text = one_line(json.loads(found[1], strict=False) if found else body)
    return "" if text.startswith("<") else text[:WORDS] + "…" * (len(text) > WORDS)


def _read_completion(body: bytes, raw: str, prompt: Prompt, server: Address) -> Answer:
    """Return the outcome from the body of a chat completion: its text, or a failure.

    The text must be complete and not empty.
    """
    try:
        value = json.loads(body)
        choice = value["choices"][0]
        text, finish = server.scrub(_content(choice["message"])), choice.get("finish_reason")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        message = "the response is not a chat completion with a text: check the judge's address"
        return _failed("broken", message, raw, again="reask")
    usage = value.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    tokens = [counts.get(name, -1) for name in ("prompt_tokens", "completion_tokens")]
    if not all(type(count) is int and 0 <= count <= MOST_TOKENS for count in tokens):
        # an estimate, which is too low in non-Latin scripts
        tokens = [-(-len(text) // CHARACTERS) for text in (prompt.text, text)]
    cost = Cost(tokens_in=tokens[0], tokens_out=tokens[1])
    if finish == "length":
        return _failed("truncated", f"the reply was cut off: {MORE_TOKENS}", text, cost=cost)
    if not text.strip():
        return _failed("empty", "the reply is empty", raw, again="reask", cost=cost)
    return Answer(text, cost=cost, tokens=choice.get("logprobs"))


def _content(message: JsonMapping) -> str:
    """Return the text of a message.

    If the field "content" is empty, the result is the text in "reasoning_content" or "reasoning". A
    server puts the whole reply there if it does not find the end of the model's thinking.
    """
    for name in ("content", "reasoning_content", "reasoning"):
        text = message.get(name) or ""
        if isinstance(text, list):
            text = "".join(part["text"] for part in text if part["type"].endswith("text"))
        if text.strip():
            return str(text)
    return ""


def retry_after(header: str, now: datetime | None = None) -> float | None:
    """Parse a Retry-After header, a number or a date, to seconds; None if it is invalid.

    `now` is the current time, by default that of the system clock.
    """
    with suppress(ValueError):
        seconds = float(header)
        return seconds if seconds >= 0 else None
    with suppress(ValueError, TypeError, OverflowError):
        then = parsedate_to_datetime(header)
        # HTTP dates are in UTC (RFC 9110)
        then = then if then.tzinfo else then.replace(tzinfo=UTC)
        return max(0.0, (then - (now or datetime.now(UTC))).total_seconds())
    return None


def _unanswered(server: Address, error: Exception, timeout: float | None) -> Answer:
    """Return the outcome of a request without a response, because of a timeout or connection."""
    import aiohttp

    if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError):
        return _failed(
            "timeout", f"no reply within {timeout:g} s: the server may be overloaded", again="retry"
        )
    # the error's text may repeat a malformed response, so secrets are masked
    url, reason = server.shown, one_line(server.scrub(str(error))) or type(error).__name__
    if isinstance(error, aiohttp.ClientSSLError):
        message = (
            f"no TLS connection to {url} ({reason[:200]}): write http:// if the server has no TLS;"
            " if its certificate is not trusted, name the signer's file in SSL_CERT_FILE"
        )
        return _failed("connection", message)
    absent = isinstance(error, aiohttp.ClientConnectorError)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        reason, absent = "the server does not accept connections", True
    problem = "no connection to" if absent else "lost the connection to"
    message = f"{problem} {url} ({reason})"[:340]
    message += ": is the server running there, and is https:// or http:// right?"
    return _failed("connection", message, again="retry", absent=absent)
