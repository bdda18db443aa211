"""A trained policy as one checkpoint that servers and other programs load: its adapter merged
into its base, with a card.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.disk import check_space
from workbench.merge import BYTES, WHOLE, Dtype, Merge, find, opened
from workbench.publish import Repository, claim, files_of, publish
from workbench.runs.checkpoints import mark_complete
from workbench.runs.folder import read_json
from workbench.types import WorkbenchError

TOLD = (  # of an evaluation, what the card shows
    "accuracy", "abstention", "hallucination", "truthfulness", "factscore", "factscore_on_subject", "responded",
    "fact_per_query", "coherent", "recall@32", "f1@32",
)  # fmt: skip


def export_merged(
    policy: str,
    out: Path,
    *,
    base: str | None = None,
    dtype: Dtype = "base",
    push: Repository | None = None,
) -> dict[str, Any]:
    """Merge a policy's LoRA adapter into its base and write the checkpoint to the folder `out`,
    whole or not at all.

    They are merged in float32 on the CPU, one weight at a time, and stored as `dtype`: "base" is
    what the base is stored in. A type of fewer bits rounds, so that the merged policy may answer
    a close question otherwise than the adapter did in training. The base's own defaults of
    sampling are left out.

    Args:
        policy: a run's or an adapter's folder.
        base: the model under the adapter; by default what the run started from, or the one that
        the adapter names.
        push: a new or empty repository of the hub that is sent the same files.

    Returns:
        `out`, `base`, `dtype`, `parameters` and `bytes`, those of the weights' file; with `push`
        what `publish` returns.

    Raises:
        WorkbenchError: there is no such policy, it has no adapter, or it cannot be read; a
        folder that is not empty,
            a full disk, or a repository that cannot be written: before a weight is read. A
            weight that is not finite or that
            the type cannot hold. `NotSent`, where the hub does not take what was written.
    """
    out = out.resolve()
    place = find(policy, base)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise WorkbenchError(f"'{out}' is there already: name a folder that is new or empty")
    merge = opened(place, dtype)
    size = BYTES[merge.dtype] * merge.parameters
    check_space(out, size, "name a folder on another disk")
    if push:
        claim(push)
    _write(merge, card(place.adapter, place.base, merge.dtype), out)
    return {
        "out": str(out),
        "base": place.base,
        "dtype": merge.dtype,
        "parameters": merge.parameters,
        "bytes": (out / WHOLE).stat().st_size,
        **(publish(push, files_of(out), out) if push else {}),
    }


def _write(merge: Merge, told: str, out: Path) -> None:
    """The checkpoint with its card, which may be edited: it is none of the files whose digests
    are checked.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    try:
        merge.save_pretrained(str(partial))
        merge.tokenizer.save_pretrained(str(partial))
        mark_complete(partial)
        (partial / "README.md").write_text(told, encoding="utf-8")
        partial.chmod(0o755)
        os.replace(partial, out)  # an empty folder may be there
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def card(adapter: Path, base: str, dtype: str, *, differs: str | None = None) -> str:
    """The README of a merged policy: what it was trained by and told, and what was measured of
    it, before it was merged.

    Args:
        differs: of a GGUF file, which text its readers encode otherwise than the policy's
        tokenizer, "" for none.
    """
    run = adapter.parent
    config, summary = read_json(run / "config.json") or {}, read_json(run / "summary.json") or {}
    public = not Path(base).is_dir()
    library, form = (
        ("transformers", "") if differs is None else ("gguf", " in one file for llama.cpp")
    )
    begun = str(config.get("policy") or base)  # what a run started from, before a stage of its own
    named = Path(begun).name if Path(begun).is_dir() else begun
    lines = [
        "---",
        *([f"base_model: {base}"] if public else []),
        f"library_name: {library}",
        "---",
        "",
    ]
    lines += [
        f"# {named}, trained for factuality",
        "",
        f"A LoRA adapter merged into its base, stored as {dtype}{form}.",
        "",
    ]
    if differs:
        lines += [
            (
                f"Readers of the file encode {differs} otherwise than the policy's tokenizer: send"
                " such prompts as ids."
            ),
            "",
        ]
    if config.get("method"):
        versions = ", ".join(
            f"{name} {version}" for name, version in (config.get("versions") or {}).items()
        )
        how = (
            f"`{named}`, trained by the method `{config['method']}` on the bench"
            f" `{config.get('bench')}`"
        )
        lines += [
            f"{how}, seed {config.get('seed')}, with {versions or 'versions that nobody noted'}.",
            "",
        ]
    if any(
        name == "load_in_4bit" and value is True for name, value in _settings(config.get("config"))
    ):
        lines += [
            (
                "It was trained on the base in 4 bits, and merged into the base as that is stored:"
                " it may answer a close question otherwise than it did in training."
            ),
            "",
        ]
    if told := _told(config):
        lines += [
            (
                "In training it was told before each question, and its answers may be others where"
                " it is not:"
            ),
            "",
        ]
        lines += [*(f"> {line}" for line in told.splitlines()), ""]
    if summary.get("after") and (rows := list(_measured(summary))):
        asked = summary["after"]
        shown = (
            f"Greedy answers to {asked.get('n')} questions of the split {asked.get('split')}, with"
            " 95 % intervals"
        )
        lines += [f"{shown}, as the adapter gave them before it was merged:", ""]
        lines += ["| | before training | after |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _settings(config: Any) -> Iterator[tuple[str, Any]]:
    """The settings of a stored config, and those of its parts, each by its own name."""
    for name, value in (config if isinstance(config, Mapping) else {}).items():
        yield name, value
        yield from _settings(value)


def _told(config: Mapping[str, Any]) -> str:
    prompts = (config.get("config") or {}).get("prompts") or {}
    return str(prompts.get("system") or "")


def _measured(summary: Mapping[str, Any]) -> Iterator[str]:
    greedy = [((summary.get(when) or {}).get("greedy") or {}) for when in ("before", "after")]
    for name in TOLD:
        cells = [_cell(report.get(name)) for report in greedy]
        if any(cells):
            yield f"| {name} | {' | '.join(cell or '–' for cell in cells)} |"


def _cell(value: Any) -> str:
    if not isinstance(value, Mapping) or value.get("value") is None:
        return ""
    return f"{value['value']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"
