"""Parse the URL of a judge's server, and keep its secrets from being printed or stored.

Secrets are the API key, and the user and password in the URL. They are sent only over https or to
this machine, and never written into a message or a file.
"""

import base64
import html
import ipaddress
import os
import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from workbench.types import WorkbenchError

KEY = "WORKBENCH_JUDGE_KEY"  # the environment variable with the key of any endpoint
# the hosts to which OPENAI_API_KEY is sent
OPENAI = ("api.openai.com", "eu.api.openai.com", "us.api.openai.com")
LOCAL_FIRST = "local+"  # prefix of a judge's URL: the local verifier checks claims before the judge
SHORTEST = 4  # characters; a shorter secret is not masked, because many words contain it
_SECRET = re.compile("key|token|secret|sig|pass|auth|code", re.I)  # parameters of a query
_UNICODE = re.compile(r"\\+u([0-9a-f]{4})", re.I)


@dataclass(frozen=True)
class Address:
    """The URL of a server's chat completions, and the secrets for it.

    Attributes:
        url: the URL for requests, without user and password.
        shown: the URL for messages. It has no query, because a query may contain a key.
        headers: the headers that authenticate a request.
        secrets: texts that `scrub` masks.
    """

    url: str = field(repr=False)
    shown: str
    headers: dict[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)

    def scrub(self, text: str) -> str:
        """Return `text`, which a server sent, with each secret replaced by "[secret]".

        If a secret appears in an escaped form, as in `%2F` for `/`, the whole result is "[secret]".
        """
        if not self.secrets:  # the search for escaped forms takes longer than the rest of a reply
            return text
        for secret in self.secrets:
            text = text.replace(secret, "[secret]")
        plain = text
        for _ in range(3):  # escapes may be nested: JSON in JSON, a quoted URL in a URL
            escaped = _UNICODE.sub(lambda match: chr(int(match[1], 16)), plain)
            plain = html.unescape(unquote(escaped.replace("\\", "")))
        repeated = any(secret.lower() in plain.lower() for secret in self.secrets)
        return "[secret]" if repeated else text


def address(url: str, key: str | None = None) -> Address:
    """Parse the URL of a judge's server, and return it with its secrets as an `Address`.

    A URL without a path gets the path `/v1`. `key` is the API key, if the server needs one.

    Raises:
        WorkbenchError: the URL or the key is malformed, or a secret would be sent unencrypted to
            another machine.
    """
    parts = _parts(url)
    # an "@" after the host: probably the rest of a password with a "/" or "?"
    if parts is None or parts.fragment or "@" in parts.path + parts.query:
        raise WorkbenchError(
            f"no judge '{redacted(url)}': write its address with http:// or https:// in front, like"
            " http://127.0.0.1:8000/v1"
        )
    login, _, host = parts.netloc.rpartition("@")
    headers: dict[str, str] = {}
    secrets = [value for name, value in parse_qsl(parts.query) if _SECRET.search(name)]
    if login and key is not None:
        raise WorkbenchError(
            f"the judge '{redacted(url)}' has both a key and a user in its address: remove the user"
            " and password from the address, or give no key"
        )
    if login:
        user, _, password = (unquote(part) for part in login.partition(":"))
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        headers = {"Authorization": f"Basic {token}"}
        secrets += [token, login, password]
    elif key is not None:
        if not key.isascii() or not key.isprintable() or not key.strip():
            raise WorkbenchError(
                "the API key is empty or has invalid characters, such as a line break: copy it"
                " again"
            )
        headers = {"Authorization": f"Bearer {key}"}
        if "api-version=" in parts.query:  # Azure reads the key from a header of its own
            headers["api-key"] = key
        secrets.append(key)
    if secrets and parts.scheme != "https" and not _is_loopback(parts.hostname or ""):
        raise WorkbenchError(
            f"the key or password of the judge would be sent unencrypted to '{redacted(url)}': use"
            f" an https address, use a tunnel on 127.0.0.1, or send no secret (unset {KEY})"
        )
    path = (parts.path.rstrip("/") or "/v1").removesuffix("/chat/completions")
    shown = f"{parts.scheme}://{host.lower()}{path}/chat/completions"
    url = f"{shown}?{parts.query}" if parts.query else shown
    return Address(url, shown, headers, tuple(s for s in secrets if len(s) >= SHORTEST))


def redacted(url: str) -> str:
    """Return a URL without user, password and query, for messages and files."""
    parts = _parts(url)
    if parts is None:
        return "…" if re.search("[@#]", url) else url.partition("?")[0]
    # an "@" after the host: the host may be part of a password
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":
        return f"{parts.scheme}://…"
    _, at, host = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{at and '…@'}{host}{parts.path}"


def key_of(url: str, variable: str | None = None) -> str | None:
    """Return the API key for a server from an environment variable; None if there is none.

    Args:
        url: the URL of the server.
        variable: name of the environment variable. None: WORKBENCH_JUDGE_KEY (`KEY`) or, for
            OpenAI's hosts only, OPENAI_API_KEY; no key if the URL has a user.

    Raises:
        WorkbenchError: the environment variable named by `variable` is not set.
    """
    if variable is not None:
        if key := os.environ.get(variable):
            return key
        raise WorkbenchError(
            "--api-key-env: no environment variable of this name is set: export the key in a"
            " variable, and pass the variable's name, not the key"
        )
    parts, names = _parts(url), [KEY]
    if not parts or "@" in parts.netloc:
        return None
    if parts.scheme == "https" and parts.port in (None, 443) and parts.hostname in OPENAI:
        names.append("OPENAI_API_KEY")
    return next((key for name in names if (key := os.environ.get(name))), None)


def is_local(url: str) -> bool:
    """Return whether a server is on this machine."""
    parts = _parts(url)
    return parts is not None and _is_loopback(parts.hostname or "")


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
