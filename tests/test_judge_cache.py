"""The reply cache: prompts are not sent twice, also by several processes, and other programs'
files are not changed.
"""

import multiprocessing
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.scripted_judge import JudgeServer, by_checksum
from tests.helpers import start_python
from workbench.judge import Element, endpoint, render
from workbench.judge.cache import Cache
from workbench.types import Cost, JsonObject, Prompt, WorkbenchError

CLIENT = """
import sys
from workbench.judge import endpoint, render
url, cache, count = sys.argv[1:]
claims = [f"Claim {n}." for n in range(int(count))]
prompts = [render("verify", question="q", passages=["p"], claims=[claim]) for claim in claims]
replies = endpoint(url, "m", cache=cache, concurrency=16, backoff=0.01)(prompts)
right = sum(reply.error is None for reply in replies)
print(len(replies), right, sum(reply.cost.calls for reply in replies))
"""


def prompts(count: int, start: int = 0) -> list[Prompt]:
    return [
        render("verify", question="q", passages=["p"], claims=[f"Claim {n}."])
        for n in range(start, start + count)
    ]


def client(server: JudgeServer, cache: Path, count: int) -> subprocess.Popen[str]:
    return start_python("-c", CLIENT, server.url, cache, count)


def finished(process: subprocess.Popen[str]) -> list[int]:
    """Wait for a client; return its numbers of prompts, verdicts and calls."""
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return [int(number) for number in out.split()]


def stored(cache: Path) -> int:
    with closing(sqlite3.connect(cache)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return int(connection.execute("SELECT count(*) FROM replies").fetchone()[0])


def test_the_second_run_of_the_same_work_makes_no_calls(tmp_path: Path) -> None:
    file = tmp_path / "new" / "judge.sqlite"
    with JudgeServer() as server:
        first = endpoint(server.url, "m", cache=file)(prompts(50))
        judge = endpoint(server.url, "m", cache=file)
        assert [reply.text for reply in judge(prompts(50))] == [
            reply.text for reply in first
        ] and server.requests == 50
        assert judge.totals == Cost(cached=50)
        assert {reply.cost for reply in judge(prompts(50))} == {Cost(cached=1)}
        judge(prompts(60))
        assert server.requests == 60


def test_the_key_contains_everything_that_a_reply_depends_on(tmp_path: Path) -> None:
    file = tmp_path / "judge.sqlite"
    with JudgeServer() as server:
        changes: list[JsonObject] = [
            {},
            {"model": "other"},
            {"temperature": 0.5},
            {"extra": {"seed": 1}},
            {"extra": {"top_p": 0.9}},
        ]
        for count, options in enumerate(changes, start=1):
            judge = endpoint(server.url, cache=file, **{"model": "m", **options})
            judge(prompts(3))
            judge(prompts(3))
            assert server.requests == 3 * count
        (prompt,) = prompts(1)
        endpoint(server.url, "m", cache=file)([Prompt("outcome", prompt.text)])
        assert server.requests == 3 * count + 1
        # a finished reply does not depend on the maximum length
        endpoint(server.url, "m", cache=file, max_new_tokens=9000)(prompts(3))
        assert server.requests == 3 * count + 1


def test_secrets_and_spellings_of_an_address_are_not_in_the_key(tmp_path: Path) -> None:
    with JudgeServer() as server:
        named = server.url.replace("127.0.0.1", "LOCALHOST")
        endpoint(named, "m", cache=tmp_path / "c", key="one", timeout=9)(prompts(3))
        for url in (
            named.lower(),
            named.removesuffix("/v1"),
            f"{named}/chat/completions",
            named.replace("//", "//me:hidden@"),
        ):
            judge = endpoint(
                url, "m", cache=tmp_path / "c", key=None if "@" in url else "two", concurrency=1
            )
            assert {reply.cost for reply in judge(prompts(3))} == {Cost(cached=1)}
        assert server.requests == 3
    content = (tmp_path / "c").read_bytes()
    assert b"one" not in content and b"hidden" not in content


def test_failures_are_not_stored(tmp_path: Path) -> None:
    def reply(task: str, found: Sequence[Element]) -> str:
        return (
            "I think it is correct."
            if broken and "Claim 2." in found[-1].text
            else str(by_checksum(task, found))
        )

    broken = True
    with JudgeServer(reply=reply) as server:
        judge = endpoint(server.url, "m", cache=tmp_path / "c", reasks=0)
        assert [one.error is None for one in judge(prompts(4))] == [True, True, False, True]
        assert stored(tmp_path / "c") == 3
        broken = False
        assert [one.cost.cached for one in judge(prompts(4))] == [
            1,
            1,
            0,
            1,
        ] and server.requests == 5


def test_an_unreadable_stored_reply_is_requested_again(tmp_path: Path) -> None:
    with JudgeServer() as server:
        judge = endpoint(server.url, "m", cache=tmp_path / "c")
        judge(prompts(3))
        with closing(sqlite3.connect(tmp_path / "c", isolation_level=None)) as connection:
            connection.execute(
                "UPDATE replies SET text = 'correct' WHERE key = (SELECT min(key) FROM replies)"
            )
        assert all(reply.error is None for reply in judge(prompts(3))) and server.requests == 4


@pytest.mark.slow
def test_several_processes_share_a_file(tmp_path: Path) -> None:
    file = tmp_path / "judge.sqlite"
    with JudgeServer(delay=0.01) as server:
        processes = [client(server, file, 200) for _ in range(3)]
        for process in processes:
            assert finished(process)[:2] == [200, 200]
        assert stored(file) == 200 and len(server.asked) == 200
        assert endpoint(server.url, "m", cache=file)(prompts(200))[199].cost == Cost(cached=1)


def test_a_lookup_does_not_create_a_missing_or_removed_cache_file(tmp_path: Path) -> None:
    """A thread that ends late may still look for replies."""
    cache = Cache(tmp_path / "c.sqlite")
    assert cache.get([b"k"]) == {} and not cache.file.exists()
    cache.put(b"k", "m", "verify", "{}")
    assert cache.get([b"k"])
    cache.close()
    cache.file.unlink()
    assert cache.get([b"k"]) == {} and not cache.file.exists()


def test_a_forked_process_opens_the_file_itself(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c")
    cache.put(b"k", "m", "verify", "text", 0.5)
    child = multiprocessing.get_context("fork").Process(target=_from_a_fork, args=(cache,))
    child.start()
    child.join(20)
    assert child.exitcode == 0
    assert cache.get([b"k", b"forked"]) == {b"k": ("text", 0.5), b"forked": ("yes", None)}


def _from_a_fork(cache: Cache) -> None:
    assert cache.get([b"k"]) and len(cache._opened) == 2
    cache.put(b"forked", "m", "verify", "yes")


def test_a_full_disk_is_reported_and_no_stored_reply_is_lost(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "c")
    cache._connection().execute("PRAGMA max_page_count=4")
    keys = [bytes([number]) for number in range(20)]
    output = [cache.put(key, "m", "verify", "x" * 2000) for key in keys]
    assert 0 < len(cache.get(keys)) == output.count(None) < 20 and "full" in str(output[-1])


def foreign(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE replies (key, model, task, text)")


def damaged(file: Path) -> None:
    cache = Cache(file)
    for number in range(100):
        cache.put(bytes([number]), "m", "verify", "x" * 2000)
    cache.close()
    content = bytearray(file.read_bytes())
    content[4096:] = b"\x07" * (len(content) - 4096)
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda file: file.write_text("id,question\n" * 1000), "not a database"),
        (
            lambda file: file.write_bytes(
                b"SQLite format 3\x00 and then nothing of the kind" * 100
            ),
            "another file",
        ),
        (lambda file: file.mkdir(), "unable to open"),
        (foreign, "another program"),
        (damaged, "another file"),
    ],
    ids=["text", "header", "folder", "foreign", "damaged"],
)
def test_a_file_that_is_not_a_cache_is_an_error_and_unchanged(
    tmp_path: Path, make: object, message: str
) -> None:
    file = tmp_path / "file"
    make(file)  # type: ignore[operator]
    before = file.read_bytes() if file.is_file() else b""
    with pytest.raises(WorkbenchError, match=message) as raised:
        endpoint("http://127.0.0.1:9", "m", cache=file, retries=0)(prompts(3))
    assert "\n" not in str(raised.value) and str(file) in str(raised.value)
    assert (file.read_bytes() if file.is_file() else b"") == before
