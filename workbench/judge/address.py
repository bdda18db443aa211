"""The address of an endpoint and its secret: a key, or the user and password in the address.

A secret is sent only over https or to this machine. It is never part of a message or a file.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from workbench.types import WorkbenchError

KEY = "WORKBENCH_JUDGE_KEY"  # the environment variable with the key of any endpoint
HOSTS = {"OPENAI_API_KEY": ("api.openai.com", "eu.api.openai.com", "us.api.openai.com")}
SHORTEST = 4  # characters; a shorter secret is not masked, because many words contain it


@dataclass(frozen=True)
class Address:
    """The URL of chat completions. User and password are removed; see `headers` and `secrets`."""

    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def without_secrets(self, body: bytes) -> bytes:
        """Mask the secrets that a server repeats in the body of its response."""
        for secret in self.secrets:
            body = body.replace(secret.encode(), b"[secret]") if len(secret) >= SHORTEST else body
        return body


def address(url: str, key: str | None = None) -> Address:
    """Parse the address of a server; a bare host gets `/v1`.

    Raises:
        WorkbenchError: the address or the key is malformed, or a secret would be sent unencrypted
            to another machine.
    """
    parts = _parts(url)
    # an "@" in the path: probably the rest of a password with a "/"
    if parts is None or parts.query or parts.fragment or "@" in parts.path:
        raise WorkbenchError(
            f"'{redacted(url)}' is not the address of a judge: write one like"
            " http://127.0.0.1:8000/v1"
        )
    login, _, host = parts.netloc.rpartition("@")
    headers: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    if login and key is not None:
        raise WorkbenchError(
            f"the judge '{redacted(url)}' has both a key and a user in its address: leave one out"
        )
    if login:
        user, _, password = (unquote(part) for part in login.partition(":"))
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        headers, secrets = {"Authorization": f"Basic {token}"}, (token, login, password)
    elif key is not None:
        if not key.isascii() or not key.isprintable() or not key.strip():
            raise WorkbenchError(
                "the API key is empty or has invalid characters: check it for line ends"
            )
        headers, secrets = {"Authorization": f"Bearer {key}"}, (key,)
    if secrets and parts.scheme != "https" and not _is_loopback(parts.hostname or ""):
        raise WorkbenchError(
            f"the key or password of the judge would go unencrypted to '{redacted(url)}': give its"
            f" https address, or a tunnel's on 127.0.0.1; or send none (unset {KEY})"
        )
    path = (parts.path.rstrip("/") or "/v1").removesuffix("/chat/completions")
    return Address(f"{parts.scheme}://{host.lower()}{path}/chat/completions", headers, secrets)


def redacted(url: str) -> str:
    """Return an address for messages and files, without user, password and query."""
    parts = _parts(url)
    if parts is None:
        return "…" if re.search("[@?#]", url) else url
    # an "@" after the host: the host may be part of a password
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":
        return f"{parts.scheme}://…"
    _, at, host = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{at and '…@'}{host}{parts.path}"


def key_of(url: str, variable: str | None = None) -> str | None:
    """Return an endpoint's key from the environment, or None.

    The key is read from `variable` if it is given, otherwise from `KEY`, and for OpenAI's hosts
    from OPENAI_API_KEY.

    Raises:
        WorkbenchError: `variable` is not set.
    """
    if variable is not None:
        if key := os.environ.get(variable):
            return key
        raise WorkbenchError(
            "--api-key-env: no environment variable of this name is set (it takes a name, not the"
            " key)"
        )
    parts, names = _parts(url), [KEY]
    if parts and "@" in parts.netloc:
        return None
    if parts and parts.scheme == "https" and parts.port in (None, 443):
        names += [name for name, hosts in HOSTS.items() if parts.hostname in hosts]
    return next((key for name in names if (key := os.environ.get(name))), None)


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url.strip())
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        return parts if known else None
    except ValueError:
        return None


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
