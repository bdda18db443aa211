"""Where an endpoint is, and the secrets that are sent there: a key, or the user and password
that an address may hold.

A secret goes over https or to this machine alone, and reaches no message and no file.
"""

from __future__ import annotations

import base64
import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from workbench.types import WorkbenchError

# characters of a secret that is looked for in what a server answers; a shorter one is in many words
TELLING = 4


@dataclass(frozen=True)
class Address:
    """Where completions are asked for, without user and password; these or the key are in
    `headers`, and in `secrets`.
    """

    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def without_secrets(self, body: bytes) -> bytes:
        """What a server answered, should it repeat what it was sent."""
        for secret in self.secrets:
            body = body.replace(secret.encode(), b"[secret]") if len(secret) >= TELLING else body
        return body


def address(url: str, key: str | None = None) -> Address:
    """Read the address of a server (a bare host gets `/v1`), with the key that it wants, if any.

    Raises:
        WorkbenchError: it is no address, the key is no key, or a secret would go unencrypted to
        another machine.
    """
    parts = _parts(url)
    # which a password with a "/" would look like
    if parts is None or parts.query or parts.fragment or "@" in parts.path:
        raise WorkbenchError(
            f"'{shown(url)}' is no address of a judge: give one like http://127.0.0.1:8000/v1"
        )
    login, _, host = parts.netloc.rpartition("@")
    if login and key is not None:
        raise WorkbenchError(
            f"the judge '{shown(url)}' is given both a key and a user in its address: leave one of"
            " them out"
        )
    headers, secrets = (
        _with_login(login) if login else _with_key(key) if key is not None else ({}, ())
    )
    if headers and parts.scheme != "https" and not _here(parts.hostname or ""):
        raise WorkbenchError(
            f"the key, or the password, of the judge would go unencrypted to '{shown(url)}': give"
            " its https address, or a tunnel's on 127.0.0.1; or send none (unset"
            " WORKBENCH_JUDGE_KEY)"
        )
    path = parts.path.rstrip("/") or "/v1"
    path = path if path.endswith("/chat/completions") else f"{path}/chat/completions"
    return Address(f"{parts.scheme}://{host.lower()}{path}", headers, secrets)


def shown(url: str) -> str:
    """What may be shown and stored of an address: no user, no password, and no query, where keys
    are written, too.
    """
    parts = _parts(url)
    if parts is None:
        return "…" if re.search("[@?#]", url) else url
    # then the host may be a part of a password
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":
        return f"{parts.scheme}://…"
    _, at, host = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{at and '…@'}{host}{parts.path}"


def has_login(url: str) -> bool:
    """Whether an address holds a user or a password."""
    parts = _parts(url)
    return parts is not None and "@" in parts.netloc


def leads_to(url: str, hosts: tuple[str, ...]) -> bool:
    """Whether an address is one of these hosts', over https and at its usual port."""
    parts = _parts(url)
    return (
        parts is not None
        and parts.scheme == "https"
        and parts.hostname in hosts
        and parts.port in (None, 443)
    )


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url.strip())
        return (
            parts
            if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
            else None
        )
    except ValueError:
        return None


def _here(host: str) -> bool:
    """Whether a host is this machine, by the name or the number that always is."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _with_key(key: str) -> tuple[dict[str, str], tuple[str, ...]]:
    if not key.isascii() or not key.isprintable() or not key.strip():
        raise WorkbenchError(
            "the API key is empty or has characters that no key has: check for line ends around it"
        )
    return {"Authorization": f"Bearer {key}"}, (key,)


def _with_login(login: str) -> tuple[dict[str, str], tuple[str, ...]]:
    user, _, password = (unquote(part) for part in login.partition(":"))
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {token}"}, (token, login, password)
