"""What came back from a chat-completions server: a reply's text, or why there is none and
whether to try again.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from workbench.judge.address import Address, shown
from workbench.judge.batch import estimate_tokens, lost
from workbench.types import Cost, Failure, Prompt

# bytes of a body that are read; the longest reply that can be, all its characters escaped, takes
# fewer
LARGEST = 2_000_000
RETRIED = (408, 409, 429)  # and all from 500
CONNECTING = 10.0  # seconds that a server may take to accept a connection
SERVERS = ("timeout", "connection", "server", "rate_limit", "auth", "not_found")

_REMEDIES = {
    401: ("auth", "it wants an API key, or another one (--api-key-env NAME)"),
    403: ("auth", "the key may not use this model"),
    404: ("not_found", "check the address (it usually ends in /v1) and the name of the model"),
    413: ("refused", "the prompt is too long for it"),
}


@dataclass(frozen=True)
class Answer:
    """One request's outcome. `again` says which patience a next try would use; `wait` is what
    the server asked for; `absent` that nobody took the connection."""

    text: str | None = None
    failure: Failure | None = None
    again: Literal["retry", "reask"] | None = None
    wait: float | None = None
    absent: bool = False
    cost: Cost = field(default_factory=lambda: Cost(calls=1))
    estimated: int = 0

    @property
    def servers_fault(self) -> bool:
        """The failure says something about the server, not about this prompt."""
        return self.failure is not None and self.failure.kind in SERVERS

    def timed(self, seconds: float) -> Answer:
        return replace(self, cost=replace(self.cost, seconds=seconds))

    def read(self, text: str) -> Answer:
        return replace(self, text=text)

    def unreadable(self, failure: Failure) -> Answer:
        return replace(self, text=None, failure=failure, again="reask")


async def read_response(response: Any, prompt: Prompt, sent_to: Address) -> Answer:
    """Read an HTTP response (aiohttp's); what it repeats of the address's secrets is taken out."""
    body = sent_to.without_secrets(await _body(response))
    if response.status in RETRIED or response.status >= 500:
        kind = "rate_limit" if response.status == 429 else "server"
        failure = lost(kind, f"the server answered {response.status}", _shown(body))
        return Answer(
            failure=failure, again="retry", wait=retry_after(response.headers.get("Retry-After"))
        )
    if response.status >= 300:
        kind, remedy = _REMEDIES.get(response.status, ("refused", "it does not take this request"))
        if target := response.headers.get("Location"):
            remedy = f"it is now at {shown(target)}: give that address"
        return Answer(
            failure=lost(
                kind, f"the server answered {response.status}: {remedy}"[:400], _shown(body)
            )
        )
    if len(body) > LARGEST:
        return Answer(
            failure=lost("broken", f"the body has more than {LARGEST:,} bytes", _shown(body)),
            again="reask",
        )
    return read_completion(body, prompt)


def read_completion(body: bytes, prompt: Prompt) -> Answer:
    """Read the body of a chat completion: exactly one finished message of text."""
    try:
        value = json.loads(body)
        choice = value["choices"][0]
        text, finish = choice["message"]["content"], choice.get("finish_reason")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return Answer(
            failure=lost("broken", "the body is no chat completion", _shown(body)), again="retry"
        )
    if text is not None and not isinstance(text, str):
        return Answer(failure=lost("broken", "the message is no text", _shown(body)), again="retry")
    cost, estimated = _usage(value.get("usage"), prompt, text or "")
    if finish == "length":
        return Answer(failure=_truncated(text or ""), cost=cost, estimated=estimated)
    if not text or not text.strip():
        failure = lost("empty", "the message is empty", _shown(body))
        return Answer(failure=failure, again="retry", cost=cost, estimated=estimated)
    return Answer(text, cost=cost, estimated=estimated)


def retry_after(header: str | None, now: datetime | None = None) -> float | None:
    """Seconds that a Retry-After header asks for (a number, or a date); None if it says nothing
    that can be read.
    """
    if not header:
        return None
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{0,9})?", header.strip()):
        return float(header)
    try:
        then = parsedate_to_datetime(header)
    except (ValueError, TypeError, OverflowError):
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0.0, (then - (now or datetime.now(UTC))).total_seconds())


def unreachable(url: str, error: Exception) -> Answer:
    """The outcome of a request that found no server, or whose connection broke."""
    import aiohttp

    reason, absent = (
        str(error) or type(error).__name__,
        isinstance(error, aiohttp.ClientConnectorError),
    )
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        remedy = (
            "name the file of whoever signed it in SSL_CERT_FILE, or give the name that it is for"
        )
        return Answer(
            failure=lost(
                "connection", f"the certificate of {url} is not trusted ({reason[:200]}): {remedy}"
            )
        )
    if isinstance(error, aiohttp.ClientSSLError):
        remedy = "does it speak TLS? If not, give its address with http://"
        return Answer(
            failure=lost("connection", f"no TLS connection to {url} ({reason[:200]}): {remedy}")
        )
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        reason, absent = "it does not take connections", True
    problem = (
        f"no connection to {url} ({reason}): "
        if absent
        else f"the connection to {url} was lost ({reason}): "
    )
    advice = "is the server running there?" + (
        "" if absent or url.startswith("https") else " Does it want https://?"
    )
    return Answer(
        failure=lost("connection", f"{problem[:340]}{advice}"), again="retry", absent=absent
    )


def _truncated(text: str) -> Failure:
    return lost("truncated", "the reply was cut off at max_new_tokens: allow more", text)


async def _body(response: Any) -> bytes:
    """The body, or of a larger one a little more than `LARGEST` bytes."""
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            break
    return b"".join(pieces)


def _usage(usage: Any, prompt: Prompt, text: str) -> tuple[Cost, int]:
    """What the server counted; what it did not is estimated, which the second value says."""
    counts = usage if isinstance(usage, dict) else {}
    tokens_in, tokens_out = counts.get("prompt_tokens"), counts.get("completion_tokens")
    if all(type(count) is int and count >= 0 for count in (tokens_in, tokens_out)):
        return Cost(
            calls=1, cached=0, tokens_in=int(tokens_in or 0), tokens_out=int(tokens_out or 0)
        ), 0
    return Cost(
        calls=1, cached=0, tokens_in=estimate_tokens(prompt.text), tokens_out=estimate_tokens(text)
    ), 1


def _shown(body: bytes) -> str:
    return body[:8000].decode("utf-8", "replace")
