"""An endpoint's address and its secrets: which key is sent where, and that messages and files
contain no key.
"""

import base64
import socket
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scripted_judge import JudgeServer, by_checksum
from tests.helpers import examples
from tests.helpers.score_helpers import write
from workbench.judge import endpoint, render
from workbench.judge.address import KEY as VARIABLE
from workbench.judge.address import address, key_of, redacted
from workbench.types import WorkbenchError

KEY, PASSWORD = "sk-0123456789", "pa55-w0rd"
PROMPT = render("outcome", question="Who?", answers=["Ada"], response="Ada.")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (VARIABLE, "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def score(tmp_path: Path, cli: Any) -> Any:
    """Run `workbench score`: options -> the exit code, and all printed and written text."""
    rows = [{"id": "a", "question": "Who?", "response": "<answer>Ada.</answer>", "answers": ["Bo"]}]
    files = ("--in", write(tmp_path / "in.jsonl", rows), "--out", tmp_path / "out" / "f.jsonl")

    def run(*options: str) -> tuple[int, str]:
        common = ("--method", "truthrl", "--max-failed", "1", "--judge-model", "m")
        code, *printed = cli("--debug", "score", *files, *common, *options)
        written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
        return code, "".join([*printed, *(text.decode("utf-8", "replace") for text in written)])

    return run


def spellings(key: str) -> list[str]:
    """The key as a server may repeat it: escaped for JSON, a URL or HTML."""
    escaped = "".join(f"\\u{ord(c):04x}" for c in key)
    quoted = "".join(f"%{ord(c):02X}" for c in key)
    pages = ("".join(f"&#{ord(c)};" for c in key), "".join(f"&#x{ord(c):x};" for c in key))
    plain = [key, key.upper(), key.replace("-", "%2d"), key.replace("0", "\\u0030")]
    return [*plain, escaped, escaped.replace("u", "\\\\u"), quoted, quote(quoted), *pages]


@pytest.mark.parametrize("echo", spellings(KEY), ids=range(10))
def test_a_key_that_a_server_repeats_is_masked(echo: str) -> None:
    content = {"message": {"content": f"It is {echo}."}, "finish_reason": "stop"}
    for answer in (
        web.Response(
            status=308, headers={"Location": f"https://{echo}.example/v1/{echo}?k={echo}"}
        ),
        web.Response(status=400, text=f'{{"error": {{"message": "no {echo}"}}}}'),
        web.Response(status=503, text=f"{'x' * 190}{echo}"),
        web.json_response({"choices": [content]}),
    ):
        with JudgeServer(reply=lambda *_: answer) as server:  # noqa: B023 - called in this round
            (reply,) = endpoint(server.url, "m", key=KEY, retries=0, reasks=0)([PROMPT])
        assert reply.error and "[secret]" in reply.error.message + reply.error.raw
        for text in (reply.error.message, reply.error.raw, unquote(reply.error.message)):
            assert not any(one in text for one in (echo, KEY, echo.lower()))


def test_a_malformed_response_shows_no_key() -> None:
    def answer() -> None:
        connection, _ = listener.accept()
        connection.recv(9999)
        connection.sendall(f"HTTP/1.1 200 OK\r\n{KEY}\x1b[2J\r\n\r\n".encode())
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        (reply,) = endpoint(url, "m", key=KEY, retries=0)([PROMPT])
    assert reply.error and KEY not in repr(reply) and "\x1b" not in reply.error.message


@pytest.mark.parametrize(("given_url", "asked"), examples("addresses"))
def test_an_address_does_not_keep_a_login(given_url: str, asked: str) -> None:
    found = address(given_url)
    assert found.url == asked
    assert "hush" not in repr(found) + found.scrub("HUSH")
    assert bool(found.headers) == ("ada" in given_url)
    assert "ada" not in repr(found)


def test_a_percent_encoded_login_is_decoded() -> None:
    sent = address("https://ada%40lab:p%2Fw%3A@judge.example").headers["Authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")) == b"ada@lab:p/w:"
    with pytest.raises(WorkbenchError, match="both a key and a user"):
        address("https://ada:pa55-w0rd@judge.example", KEY)


SECRET = st.text(st.sampled_from("SECRT%:/?#[]@ .") | st.characters(codec="utf-8"), min_size=1)


@given(
    SECRET,
    st.sampled_from(["http://", "https://", "ftp://", "", "//", "HTTP://"]),
    st.sampled_from(["h", "h:1/v1", "[::1]", "h:p"]),
)
def test_no_message_shows_the_secrets_of_a_url(secret: str, scheme: str, host: str) -> None:
    mark = f"~{secret}~"
    for url in (
        f"{scheme}ada~:{mark}@{host}",
        f"{scheme}{mark}@{host}",
        f"{scheme}{host}?key={mark}",
        f"{scheme}{host}#{mark}",
    ):
        assert "~" not in redacted(url)
        try:
            assert "~" not in repr(address(url))
        except WorkbenchError as error:
            assert "~" not in str(error)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2:8000", "localhost:8000", "[::1]:8000"])
def test_a_secret_may_be_sent_unencrypted_to_this_machine(host: str) -> None:
    assert address(f"http://{host}", KEY).headers == {"Authorization": f"Bearer {KEY}"}


HOSTS = ["judge.example", "10.0.0.7", "localhost.example", "127.1", "0.0.0.0", "[2001:db8::1]"]


@pytest.mark.parametrize("host", HOSTS)
def test_no_secret_is_sent_unencrypted_to_another_machine(host: str) -> None:
    assert address(f"http://{host}").headers == {}
    assert address(f"https://{host}", KEY).headers
    for url, key in (
        (f"http://{host}", KEY),
        (f"http://ada:{PASSWORD}@{host}", None),
        (f"http://{host}/v1?token={PASSWORD}", None),
        (f"HTTP://ada@{host}/v1", None),
    ):
        with pytest.raises(WorkbenchError, match=r"unencrypted.*https") as raised:
            endpoint(url, "m", key=key)
        assert KEY not in str(raised.value)
        assert PASSWORD not in str(raised.value)
        assert "ada" not in str(raised.value)


def test_which_variable_is_read_for_which_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    assert VARIABLE == "WORKBENCH_JUDGE_KEY"
    monkeypatch.setenv("OPENAI_API_KEY", "openai")
    for url in ("https://api.openai.com/v1", "https://API.openai.com:443"):
        assert key_of(url) == "openai"
    for url in (
        "https://judge.example",
        "http://api.openai.com/v1",
        "https://api.openai.com.evil.example",
        "https://evil.example?api.openai.com",
        "https://api.openai.com:8443",
        "https://api.openai.com@judge.example",
        "https://[",
    ):
        assert key_of(url) is None
        assert key_of(url, "OPENAI_API_KEY") == "openai"
    monkeypatch.setenv(VARIABLE, "ours")
    assert key_of("https://api.openai.com/v1") == key_of("https://judge.example") == "ours"
    assert key_of("https://ada:pa55-w0rd@judge.example") is None


def test_a_key_given_instead_of_its_variable_is_not_shown(
    score: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with JudgeServer() as server:
        code, output = score("--judge", server.url, "--api-key-env", KEY)
        assert code == 2 and KEY not in output and "--api-key-env" in output and not server.requests
    monkeypatch.setenv(VARIABLE, KEY)
    code, output = score("--judge", "http://gpu-node:8000")
    assert code == 2 and KEY not in output and VARIABLE in output
    code, output = score("--judge", "ada:pa55-w0rd@127.0.0.1:8000")
    assert code == 2 and PASSWORD not in output and "http://" in output


@pytest.mark.parametrize("status", [200, 308, 401])
def test_no_file_and_no_message_contains_a_password(score: Any, status: int) -> None:
    token = base64.b64encode(f"ada:{PASSWORD}".encode()).decode()
    text = f'{{"error": "no {token} ada:{PASSWORD} {PASSWORD}"}}'
    headers = {"Location": f"http://ada:{PASSWORD}@127.0.0.1:9/v1?key={KEY}"}

    def reply(task: str, found: Any) -> str | web.Response:
        refusal = web.Response(status=status, text=text, headers=headers)
        return by_checksum(task, found) if status == 200 else refusal

    with JudgeServer(reply=reply) as server:
        code, output = score("--judge", server.url.replace("//", f"//ada:{PASSWORD}@"))
    assert code == (0 if status == 200 else 3)
    assert not any(secret in output for secret in (PASSWORD, token, KEY))


def test_tls_to_a_server_without_tls_is_an_error_without_retries() -> None:
    prompts = [
        render("outcome", question=f"{n}?", answers=["Ada"], response="Ada.") for n in range(20)
    ]
    with JudgeServer() as server:
        url = server.url.replace("http:", "https:")
        replies = endpoint(url, "m", retries=5, backoff=0.001, concurrency=2)(prompts)
        assert all(
            f"no TLS connection to {url}" in str(reply.error)
            for reply in replies
            if reply.cost.calls
        )
        assert "http:// if the server has no TLS" in str(replies[0].error)
        assert sum(reply.cost.calls for reply in replies) <= 2
