"""A policy in a process of its own: an engine for where the models of this process must not be
used to generate.

Unsloth changes transformers' models in memory while it trains; an evaluation in the same process
would run the changed ones. Prompts go to the other process as token ids and completions come
back the same way, so nothing else depends on where it ran.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict

from workbench.background import environment
from workbench.generate import Completion, Sampling
from workbench.types import WorkbenchError

CODE = "from workbench.policy import answer_apart; answer_apart()"


def complete(
    folder: str,
    base: str | None,
    threads: int | None,
    prompts: list[list[int]],
    stop_ids: Sequence[int],
    how: Sampling,
) -> list[Completion]:
    """As `hf.complete`, by the policy in `folder` (over `base`, for an adapter), loaded by
    another process for this call.

    Raises:
        WorkbenchError: that process failed; it has said why on stderr.
    """
    job = {
        "folder": folder,
        "base": base,
        "threads": threads,
        "prompts": prompts,
        "stop_ids": list(stop_ids),
    }
    done = subprocess.run(
        [sys.executable, "-P", "-c", CODE],
        input=json.dumps({**job, "sampling": asdict(how)}),
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise WorkbenchError(
            f"generating with '{folder}' in a process of its own failed; the reason stands above"
        )
    return [(ids, tuple(logprobs)) for ids, logprobs in json.loads(done.stdout.splitlines()[-1])]
