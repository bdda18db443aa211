"""The outcome of one request to a chat-completions server: a text, or a failure and whether to
retry.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Literal

from workbench.judge.address import Address, redacted
from workbench.judge.batch import call_failure, estimate_tokens
from workbench.types import Cost, Failure, Prompt

if TYPE_CHECKING:
    import aiohttp

# bytes of a body that are read: more than the longest valid reply with all characters escaped
LARGEST = 2_000_000
RETRIED = (408, 409, 429)  # and all from 500
CONNECTING = 10.0  # seconds that a server may take to accept a connection
_REMEDIES = {
    401: ("auth", "it needs an API key, or another one (--api-key-env NAME)"),
    403: ("auth", "the key may not use this model"),
    404: ("not_found", "check the address (it usually ends in /v1) and the name of the model"),
    413: ("refused", "the prompt is too long for it"),
}


@dataclass(frozen=True)
class Answer:
    """The outcome of one request.

    Attributes:
        again: the kind of retry that may follow.
        wait: seconds that the server requests before a retry.
        absent: the connection was not accepted.
    """

    text: str | None = None
    failure: Failure | None = None
    again: Literal["retry", "reask"] | None = None
    wait: float | None = None
    absent: bool = False
    cost: Cost = field(default_factory=lambda: Cost(calls=1))


async def read_response(
    response: aiohttp.ClientResponse, prompt: Prompt, sent_to: Address
) -> Answer:
    """Read an aiohttp response; secrets that it repeats are masked."""
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            break
    body = sent_to.without_secrets(b"".join(pieces))
    status, raw = response.status, body[:8000].decode("utf-8", "replace")
    if status in RETRIED or status >= 500:
        kind = "rate_limit" if status == 429 else "server"
        return Answer(
            failure=call_failure(kind, f"the server answered {status}", raw),
            again="retry",
            wait=retry_after(response.headers.get("Retry-After")),
        )
    if status >= 300:
        kind, remedy = _REMEDIES.get(status, ("refused", "it refuses this request"))
        # redirects are not followed, because the other server would get the key
        if target := response.headers.get("Location"):
            remedy = f"it is now at {redacted(target)}: give that address"
        return Answer(
            failure=call_failure(kind, f"the server answered {status}: {remedy}"[:400], raw)
        )
    if size > LARGEST:
        message = f"the body has more than {LARGEST:,} bytes"
        return Answer(failure=call_failure("broken", message, raw), again="reask")
    return _read_completion(body, raw, prompt)


def _read_completion(body: bytes, raw: str, prompt: Prompt) -> Answer:
    """Read the body of a chat completion with exactly one finished text message."""
    try:
        value = json.loads(body)
        choice = value["choices"][0]
        text, finish = choice["message"]["content"], choice.get("finish_reason")
        if not isinstance(text, str | None):
            raise TypeError
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        message = "the body is not a chat completion with a text"
        return Answer(failure=call_failure("broken", message, raw), again="retry")
    usage = value.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    tokens = [counts.get(name, -1) for name in ("prompt_tokens", "completion_tokens")]
    if not all(type(count) is int and count >= 0 for count in tokens):  # missing or wrong
        tokens = [estimate_tokens(prompt.text), estimate_tokens(text or "")]
    cost = Cost(calls=1, tokens_in=tokens[0], tokens_out=tokens[1])
    if finish == "length":
        message = "the reply was cut off at max_new_tokens: allow more"
        return Answer(failure=call_failure("truncated", message, text or ""), cost=cost)
    if not text or not text.strip():
        failure = call_failure("empty", "the message is empty", raw)
        return Answer(failure=failure, again="retry", cost=cost)
    return Answer(text, cost=cost)


def retry_after(header: str | None, now: datetime | None = None) -> float | None:
    """Parse a Retry-After header, a number or a date, to seconds; None if it is unreadable."""
    if not header:
        return None
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{0,9})?", header.strip()):
        return float(header)
    try:
        then = parsedate_to_datetime(header)
    except (ValueError, TypeError, OverflowError):
        return None
    # HTTP dates are in UTC (RFC 9110)
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0.0, (then - (now or datetime.now(UTC))).total_seconds())


def unreachable(url: str, error: Exception) -> Answer:
    """Return the outcome of a request whose connection failed."""
    import aiohttp

    reason = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientSSLError):
        message = (
            f"no TLS connection to {url} ({reason[:200]}): write http:// if the server has no TLS;"
            " if its certificate is not trusted, name the signer's file in SSL_CERT_FILE"
        )
        return Answer(failure=call_failure("connection", message))
    absent = isinstance(error, aiohttp.ClientConnectorError)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        reason, absent = "it does not accept connections", True
    problem = "no connection to" if absent else "lost the connection to"
    message = f"{problem} {url} ({reason})"[:340]
    failure = call_failure(
        "connection", f"{message}: is the server running there, and is https:// or http:// right?"
    )
    return Answer(failure=failure, again="retry", absent=absent)
