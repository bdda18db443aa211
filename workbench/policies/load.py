"""Policies by name: a checkpoint's folder, an adapter, a run or a hub name -> a `Policy` in
memory.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from workbench.policies import hf, vllm, weights
from workbench.policies.generate import Completion, Policy, Sampling
from workbench.runs.folder import describe_runs, read_json
from workbench.types import WorkbenchError
from workbench.util.hub import check_adapter, from_disk_or_hub
from workbench.util.subprocess import environment
from workbench.util.threads import use_threads

REMEDY = "name a folder with config.json, model.safetensors and a tokenizer"
MERGE = "merge it, `workbench export RUN --merged DIR`, and name DIR; or leave --engine at hf"

Engine = Literal["hf", "vllm"]  # what generates: transformers or vLLM


def load_policy(
    name: str | Path,
    *,
    base: str | Path | None = None,
    device: str | None = None,
    engine: Engine = "hf",
) -> Policy:
    """Load a policy for generation.

    Args:
        name: a local folder (a full checkpoint, or a LoRA adapter, or a run folder with one
        under `policy/`), or a
            hub name. Only safetensors weights are read (of an adapter by its hub name, what
            torch's weights-only loader
            takes), and no code from the folder is run.
        base: the model under an adapter; by default the one that the adapter names.
        device: "cpu", "cuda", …; by default the GPU where there is one, and another process where
        Unsloth has changed transformers' models in this one: the policy has no `model` then.
        engine: "vllm" generates by vLLM, which is another package and chooses the device itself.
        It takes most of a GPU's
            memory, for one model a process: the next one ends it.

    Raises:
        WorkbenchError: there is no such policy, it has no weights that can be read, or there is
        no such engine here.
    """
    import torch

    check_engine(engine)
    if engine == "vllm":
        return _by_vllm(str(name), base)
    if device is None and "unsloth" in sys.modules:
        return _load_apart(str(name), base)
    model, tokenizer = _checked(
        name, base, device or ("cuda" if torch.cuda.is_available() else "cpu")
    )
    return as_policy(str(name), model.eval(), tokenizer)


def check_engine(engine: str) -> None:
    """Raise a WorkbenchError for an engine that there is not, at all or on this machine."""
    if engine not in get_args(Engine):
        raise WorkbenchError(f"no engine '{engine}': choose one of {', '.join(get_args(Engine))}")
    if engine == "vllm":
        vllm.check_installed()


def check_weights(name: str) -> None:
    """Raise a WorkbenchError for a whole model whose files do not hold its weights; none of them
    is read.
    """
    _checked(name, None, "meta")


def _by_vllm(name: str, base: str | Path | None) -> Policy:
    """The policy that generates by vLLM. Its weights are checked as `load_policy` does: vLLM
    fills what is missing with whatever the memory holds."""
    adapter, folder = _places(name, base)
    model, tokenizer = _checked(name, base, "meta")
    with weights.loading(name, MERGE if adapter else "leave --engine at hf"):
        engine = vllm.load(folder, adapter, _rank(adapter))
    return Policy(
        name,
        tokenizer,
        _stop_ids(tokenizer, model.generation_config),
        partial(vllm.complete, engine),
        positions=engine.longest,
    )


def _checked(name: str | Path, base: str | Path | None, device: str) -> tuple[Any, Any]:
    """Model and tokenizer of a policy whose weights are those that its files should have, an
    adapter merged into its base. On "meta" their names and shapes were checked alone, and
    nothing is in memory."""
    adapter, folder = _places(name, base)
    if adapter:
        check_adapter(adapter)
    weights.verify(adapter or Path(name))
    model, tokenizer = load_checkpoint(folder, device=device)
    if adapter:
        model = weights.with_adapter(model, adapter)
        weights.check_finite(str(name), model)
    return model, tokenizer


def _rank(adapter: Path | None) -> int:
    """The largest rank in an adapter; 0 for none."""
    if adapter is None:
        return 0
    config = weights.adapter_config(adapter)
    ranks = [config.get("r"), *(config.get("rank_pattern") or {}).values()]
    return max((rank for rank in ranks if isinstance(rank, int)), default=0)


def as_policy(name: str, model: Any, tokenizer: Any) -> Policy:
    """Wrap a model in memory. Its own sampling defaults are dropped: only what the caller asks
    for is applied.
    """
    from transformers import GenerationConfig

    stop_ids = _stop_ids(tokenizer, model.generation_config)
    model.generation_config = GenerationConfig(
        eos_token_id=list(stop_ids),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
    )
    complete = partial(hf.complete, model, tokenizer.pad_token_id)
    positions = getattr(model.config, "max_position_embeddings", None)
    return Policy(
        name, tokenizer, stop_ids=stop_ids, complete=complete, model=model, positions=positions
    )


def _load_apart(name: str, base: str | Path | None) -> Policy:
    """As `load_policy`, but another process generates with it."""
    from transformers import AutoConfig, GenerationConfig

    _, folder = _places(name, base)
    tokenizer = load_tokenizer(folder)
    try:
        declared = from_disk_or_hub(GenerationConfig.from_pretrained, folder)
    except OSError:
        declared = GenerationConfig.from_model_config(
            from_disk_or_hub(AutoConfig.from_pretrained, folder)
        )
    of = {"folder": name, "base": None if base is None else str(base)}
    return Policy(name, tokenizer, _stop_ids(tokenizer, declared), partial(_complete_apart, of))


def _complete_apart(
    of: dict[str, Any], prompts: list[list[int]], stop_ids: Sequence[int], how: Sampling
) -> list[Completion]:
    """Complete prompts in another process, which loads the policy for this call."""
    import torch

    asked = {"prompts": prompts, "stop_ids": list(stop_ids), "sampling": asdict(how)}
    job = {**of, **asked, "threads": torch.get_num_threads()}
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            "from workbench.policies.load import answer_apart; answer_apart()",
        ],
        input=json.dumps(job),
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise WorkbenchError(
            f"generating with '{of['folder']}' in a process of its own failed; the reason stands"
            " above"
        )
    return [(ids, tuple(logprobs)) for ids, logprobs in json.loads(done.stdout.splitlines()[-1])]


def answer_apart() -> None:
    """Run by the other process: a job of `_complete_apart` on stdin, completions on stdout."""
    job = json.load(sys.stdin)
    with use_threads(job["threads"]):
        policy = load_policy(job["folder"], base=job["base"])
        how = Sampling(**job["sampling"])
        print(json.dumps(policy.complete(job["prompts"], job["stop_ids"], how)))


def _places(name: str | Path, base: str | Path | None) -> tuple[Path | None, str]:
    """The folder of the policy's adapter, if it is one, and the checkpoint that holds the
    weights below.
    """
    adapter = adapter_folder(Path(name))
    return adapter, str(base or adapter_base(adapter)) if adapter else str(name)


def _stop_ids(tokenizer: Any, declared: Any) -> tuple[int, ...]:
    """The ids that end a response: the tokenizer's, and those that a generation config names."""
    named = declared.eos_token_id
    return tuple(
        sorted({tokenizer.eos_token_id, *(named if isinstance(named, list) else [named])} - {None})
    )


def load_checkpoint(
    folder: str, *, device: str, dtype: str | None = None, quantisation: Any = None
) -> tuple[Any, Any]:
    """Load a full checkpoint as (model, tokenizer), with padding on the left. `dtype` is float32 on
    a CPU and bfloat16 on a GPU by default, whatever type is stored.

    On the device "meta" no weight is read, but whether the files have all of them, and no other.
    `quantisation` is a config of transformers', by which the layers' matrices are held in fewer
    bits.
    """
    import torch
    from transformers import AutoModelForCausalLM

    if (Path(folder) / "adapter_config.json").is_file():  # transformers would load it, too
        check_adapter(Path(folder))
    tokenizer = load_tokenizer(folder)
    dtype = dtype or ("float32" if device == "cpu" else "bfloat16")
    where: dict[str, Any] = {"device_map": device} if device == "meta" or quantisation else {}
    if quantisation:
        where["quantization_config"] = quantisation
    with weights.loading(folder, REMEDY), _quiet_loading():
        model, info = from_disk_or_hub(
            AutoModelForCausalLM.from_pretrained,
            folder,
            dtype=getattr(torch, dtype),
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **where,
        )
    weights.check_loaded(folder, info)
    weights.check_finite(folder, model)
    return model if quantisation else model.to(device), tokenizer


def load_tokenizer(folder: str) -> Any:
    """The tokenizer of a full checkpoint; padding on the left."""
    from transformers import AutoTokenizer

    check_policy_name(folder)
    with weights.loading(folder, REMEDY):
        tokenizer = from_disk_or_hub(
            AutoTokenizer.from_pretrained, folder, padding_side="left", truncation_side="left"
        )
    weights.check_prompts(folder, tokenizer)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def check_policy_name(name: str) -> None:
    """Refuse what is neither a policy's folder nor can be a hub name ("owner/model"), before
    anything is loaded.

    A name whose first part is a local folder, or "runs", is a path and never looked up on the
    hub.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        if adapter_folder(path) is None:
            _check_checkpoint(path, name)
    elif (
        not re.fullmatch(r"\w[\w.-]*/[\w.-]+", name, re.ASCII)
        or path.parts[0] == "runs"
        or Path(path.parts[0]).exists()
    ):
        near = path.parent if len(path.parts) > 1 and path.parent.is_dir() else Path("runs")
        raise WorkbenchError(
            f"no policy folder '{name}': {describe_runs(near)}; name a run's or a model's folder,"
            " or a hub name owner/model"
        )


def _check_checkpoint(folder: Path, name: str) -> None:
    """Refuse a folder without an adapter that holds no full checkpoint either."""
    if not (folder / "config.json").is_file():
        raise WorkbenchError(
            f"policy folder '{name}' has neither config.json nor adapter_config.json"
        )
    config = read_json(folder / "config.json")
    if config is None:
        raise WorkbenchError(
            f"cannot read '{name}/config.json': it is not a JSON object of distinct keys"
        )
    if "method" in config:  # a run's; that of a model has "model_type"
        raise WorkbenchError(
            f"the run '{name}' is unfinished: repeat its train command, and it goes on where it"
            " stopped"
        )


def adapter_folder(path: Path) -> Path | None:
    """Where the LoRA adapter of a run folder (or of an adapter folder) lies; None for anything
    else.
    """
    return next((p for p in (path, path / "policy") if (p / "adapter_config.json").is_file()), None)


def adapter_base(adapter: Path) -> str:
    """The model that an adapter was trained on, as its adapter_config.json names it."""
    config = weights.adapter_config(adapter)
    if not config.get("base_model_name_or_path"):
        raise WorkbenchError(
            f"'{adapter}/adapter_config.json' names no base_model_name_or_path: give the base model"
        )
    return str(config["base_model_name_or_path"])


@contextmanager
def _quiet_loading() -> Iterator[None]:
    """No bar for loading weights where nobody watches: a log would get one line per update."""
    from transformers.utils import logging

    was_on = logging.is_progress_bar_enabled()
    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_on:
            logging.enable_progress_bar()
