"""The address of an endpoint and the secret that is sent there: a key, or the user and password
in the address.

A secret goes over https or to this machine alone, and into no message and no file.
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
SHORTEST = 4  # characters; a shorter secret is not masked, since many words contain it


@dataclass(frozen=True)
class Address:
    """The URL of chat completions, without user and password, which are in `headers` and
    `secrets`.
    """

    url: str
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def without_secrets(self, body: bytes) -> bytes:
        """What a server answered, with the secrets that it repeats masked."""
        for secret in self.secrets:
            body = body.replace(secret.encode(), b"[secret]") if len(secret) >= SHORTEST else body
        return body


def address(url: str, key: str | None = None) -> Address:
    """Read the address of a server (a bare host gets `/v1`), with the key that it wants, if any.

    Raises:
        WorkbenchError: the address or the key is malformed, or a secret would go unencrypted to
        another machine.
    """
    parts = _parts(url)
    # an "@" in the path: a password with a "/" looks so
    if parts is None or parts.query or parts.fragment or "@" in parts.path:
        raise WorkbenchError(
            f"'{shown(url)}' is no address of a judge: give one like http://127.0.0.1:8000/v1"
        )
    login, _, host = parts.netloc.rpartition("@")
    headers: dict[str, str] = {}
    secrets: tuple[str, ...] = ()
    if login and key is not None:
        raise WorkbenchError(
            f"the judge '{shown(url)}' is given both a key and a user in its address: leave one of"
            " them out"
        )
    if login:
        user, _, password = (unquote(part) for part in login.partition(":"))
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        headers, secrets = {"Authorization": f"Basic {token}"}, (token, login, password)
    elif key is not None:
        if not key.isascii() or not key.isprintable() or not key.strip():
            raise WorkbenchError(
                "the API key is empty or has characters that no key has: check for line ends"
                " around it"
            )
        headers, secrets = {"Authorization": f"Bearer {key}"}, (key,)
    if secrets and parts.scheme != "https" and not _is_loopback(parts.hostname or ""):
        raise WorkbenchError(
            f"the key, or the password, of the judge would go unencrypted to '{shown(url)}': give"
            f" its https address, or a tunnel's on 127.0.0.1; or send none (unset {KEY})"
        )
    path = (parts.path.rstrip("/") or "/v1").removesuffix("/chat/completions")
    return Address(f"{parts.scheme}://{host.lower()}{path}/chat/completions", headers, secrets)


def shown(url: str) -> str:
    """An address for messages and files: without user, password and query, which may hold a key."""
    parts = _parts(url)
    if parts is None:
        return "…" if re.search("[@?#]", url) else url
    # an "@" behind the host: then the host may be a part of a password
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":
        return f"{parts.scheme}://…"
    _, at, host = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{at and '…@'}{host}{parts.path}"


def key_of(url: str, variable: str | None = None) -> str | None:
    """The endpoint's key: from the environment variable that was named, else from `KEY`, else
    from OPENAI_API_KEY where the endpoint is one of OpenAI's hosts.

    Raises:
        WorkbenchError: the variable that was named is not set.
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
