"""Merge a trained adapter into its base model, and optionally upload it to the Hugging Face hub.

The result is a checkpoint for transformers and vLLM. llama.cpp's `convert_hf_to_gguf.py` reads it.
"""

import os
import shlex
import tempfile
from pathlib import Path
from typing import Literal, get_args

from workbench.methods.bench import bench
from workbench.policies import weights
from workbench.policies.load import (
    REMEDY,
    adapter_base,
    adapter_folder,
    as_policy,
    check_policy_name,
    load_checkpoint,
    load_policy,
)
from workbench.runs.checkpoints import mark_complete
from workbench.runs.folder import read_json
from workbench.types import JsonObject, WorkbenchError
from workbench.util.disk import check_space
from workbench.util.failures import error_line
from workbench.util.hub import check_adapter, from_disk_or_hub

Dtype = Literal["base", "float32", "bfloat16", "float16"]
CARD = """---
library_name: transformers{public}
---

# {name}, trained for factuality

A LoRA adapter merged into `{name}`, stored as {dtype}.{how}{prompt}
"""


class NotPushed(WorkbenchError):
    """The hub refused the upload of an export, which is complete on this machine."""

    code = 3


def export(
    policy: str,
    out: Path,
    *,
    base: str | None = None,
    dtype: Dtype = "base",
    push: str | None = None,
    private: bool = True,
) -> JsonObject:
    """Merge a policy's adapter into its base model on the CPU, and save the result to `out`.

    `out` is written completely or not at all. Each layer is merged in float32.

    Args:
        policy: a run's or an adapter's folder.
        out: a new or empty folder.
        base: the adapter's base model; None for the model that the run or the adapter names.
        dtype: type of the saved weights; "base" for the type in the base model's config.
        push: hub repository OWNER/NAME, new or empty, for an upload; None for no upload.
        private: whether the hub repository is private; else it is public.

    Returns:
        An object with `out`, `base`, `dtype`, `parameters` (their number) and `bytes`; after an
        upload also `repository`, `private` and `url`.

    Raises:
        WorkbenchError: there is no adapter, it does not fit the base model, `out` is not empty, the
            disk is full, the repository cannot be used, or a weight is not finite or exceeds the
            type's range.
        NotPushed: the hub refuses the finished export.
    """
    from transformers import AutoConfig

    out, adapter = out.resolve(), adapter_folder(Path(policy))
    if adapter is None:
        raise WorkbenchError(
            f"'{policy}' has no adapter: name a finished run or an adapter's folder"
        )
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise WorkbenchError(f"'{out}' exists already: name a new or an empty folder")
    check_adapter(adapter)
    base = str(base or bench("tiny").base(policy) or adapter_base(adapter))
    check_policy_name(base)
    with weights.loading(base, REMEDY):
        config = from_disk_or_hub(AutoConfig.from_pretrained, base)
    if getattr(config, "quantization_config", None):
        raise WorkbenchError(f"'{base}' is quantised: name the unquantised model as --base")
    empty = load_policy(adapter, base=base, device="meta")  # checks only names and shapes
    own = str(config.dtype or "").removeprefix("torch.")
    own = own if own in get_args(Dtype) else "float32"
    stored = own if dtype == "base" else dtype
    count = sum(one.numel() for one in empty.model.parameters())
    check_space(out.parent, count * (4 if stored == "float32" else 2), "name another disk")
    if push is not None:
        check_repository(push, private)
    # in its own type, which takes less memory, unless the type changes
    model, tokenizer = load_checkpoint(
        base, device="cpu", dtype=own if stored == own else "float32"
    )
    model = as_policy(base, weights.merged(model, adapter, stored), tokenizer).model
    if push is not None:  # only now, so that invalid weights leave no empty repository
        check_repository(push, private, create=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as folder:
        partial = Path(folder, out.name)
        model.save_pretrained(partial)
        tokenizer.save_pretrained(partial)
        mark_complete(partial)
        (partial / "README.md").write_text(card(adapter, base, stored), encoding="utf-8")
        os.replace(partial, out)
    result: JsonObject = {
        "out": str(out),
        "base": base,
        "dtype": stored,
        "parameters": count,
        "bytes": sum(one.stat().st_size for one in out.glob("*.safetensors")),
    }
    if push is not None:
        result |= {"repository": push, "private": private, "url": publish(push, out)}
    return result


def card(adapter: Path, base: str, dtype: str) -> str:
    """Return the text of an export's README, with the method and the prompts of its training."""
    run = read_json(adapter.parent / "config.json") or {}
    start = str(run.get("policy") or base)  # the policy before earlier stages
    name = Path(start).name if Path(start).is_dir() else start
    how = ""
    if run.get("method"):
        about = f"`{run['method']}` on the bench `{run.get('bench')}`, seed {run.get('seed')}"
        how = f" Trained by {about}."
    prompts = (run.get("config") or {}).get("prompts") or {}
    quoted = str(prompts.get("system") or "").replace("\n", "\n> ")
    prompt = f"\n\nSystem prompt in training:\n\n> {quoted}" if quoted else ""
    if count := prompts.get("retrieved"):
        retrieved = f"Retrieved passages before the question in each training prompt: {count}."
        prompt = f"\n\n{retrieved}{prompt}"
    public = "" if Path(base).is_dir() else f"\nbase_model: {base}"
    return CARD.format(public=public, name=name, dtype=dtype, how=how, prompt=prompt)


def check_repository(repository: str, private: bool, *, create: bool = False) -> None:
    """Check that an export can be uploaded to a hub repository.

    The repository may be missing. An existing one must be empty and writable.

    Args:
        private: whether the repository must be private; else it must be public.
        create: create the repository if it is missing.

    Raises:
        WorkbenchError: the repository cannot be used, or the hub cannot be reached.
    """
    from huggingface_hub import HfApi

    if repository.count("/") != 1:
        raise WorkbenchError(f"'{repository}' is not a repository's name: write OWNER/NAME")
    try:
        hub = HfApi(token=True)
        if create:
            hub.create_repo(repository, private=private, exist_ok=True)
        elif not hub.repo_exists(repository):
            return
        info = hub.model_info(repository)
        hub.auth_check(repository, write=True)
    except Exception as error:  # the hub and the network raise many types
        raise WorkbenchError(
            f"cannot push to '{repository}' ({error_line(error)}): check the name"
            " and the write permission of `hf auth login` or HF_TOKEN, or leave out --push"
        ) from error
    files = [one.rfilename for one in info.siblings or [] if one.rfilename != ".gitattributes"]
    state = f"has files ({files[0]}, …): name a new or empty one" if files else ""
    if not files and bool(info.private) != private:
        wanted, other = ("private", "public") if private else ("public", "private")
        state = f"is {other}, not {wanted}: name another, or set --{other}"
    if state:
        raise WorkbenchError(f"'{repository}' {state}")


def publish(repository: str, out: Path) -> str:
    """Upload a finished export to an existing hub repository in one commit, and return its URL.

    Raises:
        NotPushed: the hub refuses the upload.
    """
    from huggingface_hub import HfApi

    hub, message = HfApi(token=True), "Add a trained policy"
    try:
        hub.upload_folder(repo_id=repository, folder_path=out, commit_message=message)
    except Exception as error:  # as in `check_repository`
        command = f"hf upload {repository} {shlex.quote(str(out))} ."
        raise NotPushed(
            f"'{out}' is complete, but the hub refused it ({error_line(error)}):"
            f" `{command}` uploads it later"
        ) from error
    return f"{hub.endpoint}/{repository}"
