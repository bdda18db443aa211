"""A judge that this machine serves from a GGUF file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.judge import endpoint
from workbench.judge.batch import BatchJudge
from workbench.policies.serve import serve


@contextmanager
def served_judge(gguf: Path, name: str, cache: Path, **limits: Any) -> Iterator[BatchJudge]:
    """Context manager that serves a model as a judge whose replies follow a JSON schema.

    One request is sent at a time, because the server uses all cores for it.

    Args:
        name: name of the model in the cache's keys.
        cache: file of stored replies.
        limits: further arguments of `endpoint`, such as `max_new_tokens`.
    """
    cache.parent.mkdir(parents=True, exist_ok=True)
    server = serve(str(gguf), port=0, name=name)
    try:
        yield endpoint(
            server.url,
            name,
            extra={"response_format": "schema"},
            cache=cache,
            cache_address=name,
            concurrency=1,
            timeout=1800,
            **limits,
        )
    finally:
        server.stop()
