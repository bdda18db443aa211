"""Access control for the inspector's server, which accepts only requests of its own page.

Any web page that is open in the same browser can send requests to a server on this machine. With
DNS rebinding, the host name of such a page resolves to 127.0.0.1. The browser then gives the page
and the inspector the same origin, and only the `Host` header shows the difference.
"""

import re
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from workbench.types import WorkbenchError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LARGEST = 8_000_000  # bytes of a request: a pasted answer with its sources

# routes that the page posts to
_POSTED = re.compile(
    r"/gradio_api/(?:queue/join|run/[\w-]+|component_server|cancel|reset)/?", re.ASCII
)
# routes that the page reads; gradio has others, which serve files and forward requests
_READ = re.compile(
    r"/(?:(?:config|compare|theme\.css|favicon\.ico|manifest\.json|pwa_icon)/?)?"
    r"|/(?:static|assets|svelte)/(?!.*\.\.)[\w./@-]+"
    r"|/gradio_api/(?:info|startup-events|theme\.css|queue/(?:data|status)|heartbeat/\w+)/?",
    re.ASCII,
)
_ADDRESS = re.compile(
    r"(?:(https?)://)?([\w-]+(?:\.[\w-]+)*|\[[0-9a-f:]+\])(?::(\d{1,5}))?", re.ASCII
)


def allowed(names: Sequence[str]) -> tuple[str, ...]:
    """Check the host names of `--allow-host`, and return them in lower case.

    Raises:
        WorkbenchError: a value is not NAME or NAME:PORT, for example a URL or a pattern.
    """
    for name in names:
        if "://" in name or not _ADDRESS.fullmatch(name.lower()):
            raise WorkbenchError(
                f"--allow-host {name} is not a host's name: write it as the browser shows it, such"
                " as lab.example.org or lab:8888"
            )
    return tuple(name.lower() for name in names)


def guard(app: App, names: Sequence[str]) -> App:
    """Return an ASGI app that passes the requests of the inspector's page to `app`.

    All other requests are refused. A request is passed if all these conditions hold:

    * Its `Host` and, if present, its `Origin` are 127.0.0.1, localhost or [::1] with the served
      port, or one of `names`, such as "lab:8888". A name without a port allows any port.
    * It does not come from another page that embeds the response as an image, script or frame.
    * A GET is for a route that the page reads.
    * A POST has an `Origin`, a route that the page uses, and a JSON body of at most 8 MB.
    """

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (refusal := _refusal(scope, names)) is None:
            await app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": refusal[1]})
        else:
            from starlette.responses import PlainTextResponse

            status, words = refusal
            answer = PlainTextResponse(f"{words}\n", status, {"connection": "close"})
            await answer(scope, receive, send)

    return guarded


def _refusal(scope: Scope, names: Sequence[str]) -> tuple[int, str] | None:
    """Return (HTTP status, message) for a request to refuse, or None if it is allowed."""
    port = (scope.get("server") or ("", None))[1]
    hosts, origins = _header(scope, b"host"), _header(scope, b"origin")
    # two Host headers could be read differently by a proxy and by this server
    if len(hosts) != 1 or "://" in hosts[0] or not _ours(hosts[0], port, names):
        return 403, "unknown host name: open 127.0.0.1, or start with --allow-host NAME"
    if not all("://" in origin and _ours(origin, port, names) for origin in origins):
        return 403, (
            "requests from another page are refused; behind a proxy, start the inspector with"
            " --allow-host NAME"
        )
    if _embedded(scope):
        return 403, "another page may not embed the inspector: open it in its own window"
    return _closed(scope, bool(origins)) if scope["type"] == "http" else None


def _ours(address: str, port: int | None, names: Sequence[str]) -> bool:
    """Return whether the value of a `Host` or `Origin` header is allowed; see `guard`."""
    match = _ADDRESS.fullmatch(address)
    if not match:
        return False
    scheme, host, own_port = match.groups()
    if host in LOOPBACK and scheme != "https" and int(own_port or 80) == port:
        return True
    return host in names or f"{host}:{own_port}" in names


def _embedded(scope: Scope) -> bool:
    """Return whether another page would embed the response (as an image, script or frame).

    Browsers may send such requests without an origin, so the `Sec-Fetch` headers are read.
    Following a link from another page is allowed.
    """
    site, destination = _header(scope, b"sec-fetch-site"), _header(scope, b"sec-fetch-dest")
    followed = scope.get("method") == "GET" and destination == ["document"]
    return not (followed or set(site) <= {"same-origin", "none"})


def _closed(scope: Scope, same_origin: bool) -> tuple[int, str] | None:
    """Return (HTTP status, message) for a request that the page does not send, else None.

    Args:
        same_origin: whether the request has an `Origin`. `_refusal` has checked that it is the
            page's.
    """
    method, path = scope["method"], scope["path"]
    if method in ("GET", "HEAD"):
        return None if _READ.fullmatch(path) else (404, "the inspector has no such page")
    if method != "POST" or not _POSTED.fullmatch(path):
        return 404, "the inspector does not accept files"
    kinds, sizes = _header(scope, b"content-type"), _header(scope, b"content-length")
    if not same_origin or [kind.partition(";")[0] for kind in kinds] != ["application/json"]:
        return 403, "only the inspector's own page may send this request: reload the page"
    size = sizes[0] if len(sizes) == 1 else ""
    # the size of a chunked body is unknown before it is read
    chunked = _header(scope, b"transfer-encoding")
    if chunked or not re.fullmatch("[0-9]{1,9}", size) or int(size) > LARGEST:
        return 413, f"a request has at most {LARGEST:,} bytes"
    return None


def _header(scope: Scope, name: bytes) -> list[str]:
    return [
        value.decode("latin-1").strip().lower()
        for key, value in scope["headers"]
        if key.lower() == name
    ]
