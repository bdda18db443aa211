"""A trained policy as one checkpoint that servers and other programs load: its adapter merged into its base, with a card."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from workbench.policy import adapter_base, adapter_folder, load_policy
from workbench.runs.checkpoints import mark_complete
from workbench.runs.folder import read_json
from workbench.types import WorkbenchError

Dtype = Literal["base", "float32", "bfloat16", "float16"]
FLOATS = ("float32", "bfloat16", "float16")
TOLD = (  # of an evaluation, what the card shows
    "accuracy", "abstention", "hallucination", "truthfulness", "factscore", "factscore_on_subject", "responded",
    "fact_per_query", "coherent", "recall@32", "f1@32",
)  # fmt: skip


def export_merged(policy: str, out: Path, *, base: str | None = None, dtype: Dtype = "base") -> dict[str, Any]:
    """Merge a policy's LoRA adapter into its base and write the checkpoint to the folder `out`, whole or not at all.

    They are merged in float32 on the CPU, which takes four bytes of memory a parameter, and stored as `dtype`: "base" is what
    the base is stored in. A type of fewer bits rounds, so that the merged policy may answer a close question otherwise than
    the adapter did in training.

    Args:
        policy: a run's or an adapter's folder.
        base: the model under the adapter; by default the one that the adapter names.

    Returns:
        `out`, `base`, `dtype`, `parameters` and `bytes`, those of the weights' files.

    Raises:
        WorkbenchError: there is no such policy, it has no adapter, or it cannot be read; a folder that is not empty.
    """
    import torch

    adapter = adapter_folder(Path(policy))
    if adapter is None:
        raise WorkbenchError(f"'{policy}' holds no adapter to merge: name a run that has ended, or an adapter's folder")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise WorkbenchError(f"'{out}' is there already: name a folder that is new or empty")
    under = str(base or adapter_base(adapter))
    loaded = load_policy(policy, base=base, device="cpu")
    chosen = _stored_dtype(under) if dtype == "base" else dtype
    model = loaded.model.to(getattr(torch, chosen))
    _check_finite(model, chosen)
    partial = out.with_name(f"{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    model.save_pretrained(str(partial))
    loaded.tokenizer.save_pretrained(str(partial))
    (partial / "README.md").write_text(card(adapter, under, chosen), encoding="utf-8")
    mark_complete(partial)
    if out.exists():
        out.rmdir()
    partial.rename(out)
    written = sum(file.stat().st_size for file in out.glob("*.safetensors"))
    count = sum(weight.numel() for weight in model.parameters())
    return {"out": str(out), "base": under, "dtype": chosen, "parameters": count, "bytes": written}


def _stored_dtype(base: str) -> str:
    """What a base's config says that its weights are stored in; float32 where it says nothing."""
    from transformers import AutoConfig

    from workbench.hub import from_disk_or_hub

    config = from_disk_or_hub(AutoConfig.from_pretrained, base).get_text_config()
    name = str(getattr(config, "dtype", None) or "float32").removeprefix("torch.")
    return name if name in FLOATS else "float32"


def _check_finite(model: Any, dtype: str) -> None:
    """Refuse weights that the type cannot hold: float16 ends at 65,504."""
    import torch

    for name, weight in model.named_parameters():
        if not torch.isfinite(weight).all():
            raise WorkbenchError(f"'{name}' has a weight that {dtype} cannot hold: give --dtype bfloat16 or float32")


def card(adapter: Path, base: str, dtype: str) -> str:
    """The README of a merged policy: what it was trained by, and what was measured of it, before it was merged."""
    run = adapter.parent
    config, summary = read_json(run / "config.json") or {}, read_json(run / "summary.json") or {}
    named = base if not Path(base).is_dir() else Path(base).name
    lines = ["---", *([f"base_model: {base}"] if named == base else []), "library_name: transformers", "---", ""]
    lines += [f"# {named}, trained for factuality", "", f"A LoRA adapter merged into `{named}`, stored as {dtype}.", ""]
    if config.get("method"):
        how = f"Trained by the method `{config['method']}` on the bench `{config.get('bench')}`, seed {config.get('seed')}"
        begun = ", ".join(f"{name} {version}" for name, version in (config.get("versions") or {}).items())
        lines += [f"{how}, with {begun or 'versions that nobody noted'}.", ""]
    if rows := list(_measured(summary)):
        asked = summary.get("after") or {}
        shown = f"Greedy answers to {asked.get('n')} questions of the split {asked.get('split')}, with 95 % intervals"
        lines += [f"{shown}, as the adapter gave them before it was merged:", ""]
        lines += ["| | before training | after |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


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
