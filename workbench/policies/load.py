"""Load a policy by name: a checkpoint's folder, an adapter's folder, a run or a hub name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from workbench.policies import hf, vllm, weights
from workbench.policies.generate import Completion, Policy, Sampling
from workbench.runs.folder import describe_runs, read_json
from workbench.types import JsonObject, WorkbenchError
from workbench.util.hub import check_adapter, from_disk_or_hub
from workbench.util.subprocess import environment
from workbench.util.threads import use_threads

if TYPE_CHECKING:
    from transformers import (
        BitsAndBytesConfig,
        GenerationConfig,
        PreTrainedModel,
        PreTrainedTokenizerBase,
    )

REMEDY = "name a folder with config.json, model.safetensors and a tokenizer"
DTYPE = "WORKBENCH_DTYPE"  # environment variable: the number format of weights on a CPU
MERGE = "merge it, `workbench export RUN --merged DIR`, and name DIR; or leave --engine at hf"

Engine = Literal["hf", "vllm"]  # transformers or vLLM


def load_policy(
    name: str | Path,
    *,
    base: str | Path | None = None,
    device: str | None = None,
    engine: Engine = "hf",
) -> Policy:
    """Load a policy for generation.

    Args:
        name: folder of a full checkpoint, of a LoRA adapter or of a run; or a hub name. A full
            checkpoint must have safetensors weights. No code from the folder is run.
        base: the base model of an adapter; None for the model that adapter_config.json names.
        device: "cpu", "cuda", …; None for the GPU if there is one, else the CPU. Unsloth patches
            transformers. With None after an import of Unsloth, the policy therefore generates in a
            subprocess, and `Policy.model` is None.
        engine: "hf" (transformers) or "vllm". vLLM chooses the device itself and takes most of a
            GPU's memory. It holds one policy: loading a second one shuts down the first.

    Raises:
        WorkbenchError: unknown policy, unreadable weights, or an engine that is not available.
    """
    import torch

    check_engine(engine)
    if engine == "vllm":
        return _by_vllm(str(name), base)
    if device is None and "unsloth" in sys.modules:
        return _load_in_subprocess(str(name), base)
    model, tokenizer = _checked(
        name, base, device or ("cuda" if torch.cuda.is_available() else "cpu")
    )
    return as_policy(str(name), model.eval(), tokenizer)


def check_engine(engine: str) -> None:
    """Raise a WorkbenchError if `engine` is unknown, or vLLM is chosen and not installed."""
    if engine not in get_args(Engine):
        raise WorkbenchError(f"no engine '{engine}': choose one of {', '.join(get_args(Engine))}")
    if engine == "vllm":
        vllm.check_installed()


def check_weights(name: str) -> None:
    """Check the names and shapes of the weights in a full checkpoint, without reading the weights.

    Raises:
        WorkbenchError: weights are missing, unexpected or of another shape.
    """
    _checked(name, None, "meta")


def _by_vllm(name: str, base: str | Path | None) -> Policy:
    """Return the policy with vLLM as its engine.

    The weights are checked first, because vLLM leaves missing weights uninitialised.
    """
    adapter, folder = _locate(name, base)
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


def _checked(
    name: str | Path, base: str | Path | None, device: str
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Check a policy's weights. Return its model and tokenizer; an adapter is merged.

    On the device "meta" only names and shapes are checked, and no weight is in memory.
    """
    adapter, folder = _locate(name, base)
    if adapter:
        check_adapter(adapter)
    weights.verify(adapter or Path(name))  # before loading: a damaged file may still load
    model, tokenizer = load_checkpoint(folder, device=device)
    if adapter:
        # merged, so that a forward pass needs no products with the adapter's matrices
        model = weights.over(model, adapter).merge_and_unload()
        weights.check_finite(str(name), model)
    return model, tokenizer


def _rank(adapter: Path | None) -> int:
    """Return the highest LoRA rank of the adapter's layers; 0 if `adapter` is None."""
    if adapter is None:
        return 0
    config = weights.adapter_config(adapter)
    # `rank_pattern` may give single layers a higher rank than `r`
    ranks = [config.get("r"), *(config.get("rank_pattern") or {}).values()]
    return max((rank for rank in ranks if isinstance(rank, int)), default=0)


def as_policy(name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Policy:
    """Return a `Policy` that samples from a model in memory.

    The checkpoint's sampling defaults, such as a temperature, are removed from `model`.
    """
    from transformers import GenerationConfig

    stop_ids = _stop_ids(tokenizer, model.generation_config)
    # a checkpoint's own temperature or top-p would change every evaluation silently
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


def _load_in_subprocess(name: str, base: str | Path | None) -> Policy:
    """Return a policy that generates in a subprocess, where Unsloth does not patch transformers."""
    from transformers import AutoConfig, GenerationConfig

    _, folder = _locate(name, base)
    tokenizer = load_tokenizer(folder)
    try:
        config = from_disk_or_hub(GenerationConfig.from_pretrained, folder)
    except OSError:
        config = GenerationConfig.from_model_config(
            from_disk_or_hub(AutoConfig.from_pretrained, folder)
        )
    # Unsloth's patches in this process would change the forward pass
    complete = partial(_complete_in_subprocess, name, None if base is None else str(base))
    return Policy(name, tokenizer, _stop_ids(tokenizer, config), complete)


def _complete_in_subprocess(
    folder: str, base: str | None, prompts: list[list[int]], stop_ids: Sequence[int], how: Sampling
) -> list[Completion]:
    """Return a completion for each prompt. A subprocess loads the policy for this call."""
    import torch

    job = {
        "folder": folder,
        "base": base,
        "prompts": prompts,
        "stop_ids": list(stop_ids),
        "sampling": asdict(how),
        "threads": torch.get_num_threads(),
    }
    code = "from workbench.policies.load import run_job; run_job()"
    process = subprocess.run(
        [sys.executable, "-P", "-c", code],
        input=json.dumps(job),
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    if process.returncode:
        raise WorkbenchError(
            f"generating with '{folder}' failed in a subprocess (exit status"
            f" {process.returncode}): see its error message above"
        )
    # loading may print lines before the result
    return [(ids, tuple(logprobs)) for ids, logprobs in json.loads(process.stdout.splitlines()[-1])]


def run_job() -> None:
    """Read a JSON job from stdin, complete its prompts, and print the completions as JSON.

    This is the entry point of the subprocess in which a policy generates if Unsloth was imported.
    """
    job = json.load(sys.stdin)
    with use_threads(job["threads"]):
        policy = load_policy(job["folder"], base=job["base"])
        how = Sampling(**job["sampling"])
        print(json.dumps(policy.complete(job["prompts"], job["stop_ids"], how)))


def _locate(name: str | Path, base: str | Path | None) -> tuple[Path | None, str]:
    """Return the folder of a policy's adapter, and the folder or hub name of its base model.

    For a policy that is a full checkpoint, return None and `name`.
    """
    adapter = adapter_folder(Path(name))
    return adapter, str(base or adapter_base(adapter)) if adapter else str(name)


def _stop_ids(tokenizer: PreTrainedTokenizerBase, config: GenerationConfig) -> tuple[int, ...]:
    """Return the ids that end a response, from the tokenizer and the generation config."""
    ids = config.eos_token_id
    return tuple(
        sorted({tokenizer.eos_token_id, *(ids if isinstance(ids, list) else [ids])} - {None})
    )


def load_checkpoint(
    folder: str,
    *,
    device: str,
    dtype: str | None = None,
    quantisation: BitsAndBytesConfig | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load the model and the tokenizer of a full checkpoint. The tokenizer pads on the left.

    Args:
        folder: folder or hub name.
        device: "cpu", "cuda", … or "meta". On "meta" only the names and shapes of the weights are
            loaded and checked.
        dtype: type of the loaded weights, such as "bfloat16"; None for `number_format(device)`.
        quantisation: transformers' config for quantised weights; None for no quantisation.
    """
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    if (Path(folder) / "adapter_config.json").is_file():  # transformers would load it too
        check_adapter(Path(folder))
    tokenizer = load_tokenizer(folder)
    dtype = dtype or number_format(device)
    options: JsonObject = {"device_map": device} if device == "meta" or quantisation else {}
    if quantisation:
        options["quantization_config"] = quantisation
    if not sys.stderr.isatty():  # in a log the progress bar would write a line per update
        logging.disable_progress_bar()
    with weights.loading(folder, REMEDY):
        model, info = from_disk_or_hub(
            AutoModelForCausalLM.from_pretrained,
            folder,
            dtype=getattr(torch, dtype),
            use_safetensors=True,  # the other format can run code
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # `check_loaded` raises for them, with their names
            **options,
        )
    weights.check_loaded(folder, info)
    weights.check_finite(folder, model)
    if device == "cpu" and dtype == "bfloat16":
        # `logits_to_keep` makes a slice of the hidden states, for which the kernel is slow: 65 s
        # instead of 2.4 s for 64 rows of a 0.5B model.
        model.get_output_embeddings().register_forward_pre_hook(
            lambda _, inputs: (inputs[0].contiguous(), *inputs[1:])
        )
    # a quantised model is on its device already
    return model if quantisation else model.to(device), tokenizer


def number_format(device: str) -> str:
    """Return the default type of weights on a device: "float32" or "bfloat16".

    On a GPU it is "bfloat16". On a CPU it is the value of the environment variable WORKBENCH_DTYPE,
    or "float32" if the variable is not set.

    Raises:
        WorkbenchError: the variable has another value.
    """
    if device != "cpu":
        return "bfloat16"
    value = os.environ.get(DTYPE, "float32")
    if value not in ("float32", "bfloat16"):
        raise WorkbenchError(f"{DTYPE} is '{value}': set it to float32 or bfloat16")
    return value


def load_tokenizer(folder: str) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a full checkpoint (a folder or hub name). It pads on the left."""
    from transformers import AutoTokenizer

    check_policy_name(folder)
    with weights.loading(folder, REMEDY):
        tokenizer = from_disk_or_hub(
            # on the left, because a completion continues after the last column
            AutoTokenizer.from_pretrained,
            folder,
            padding_side="left",
            truncation_side="left",
        )
    weights.check_prompts(folder, tokenizer)
    if tokenizer.pad_token is None:  # padding is masked, so any token will do
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def check_policy_name(name: str) -> None:
    """Check that `name` is a policy's folder, or looks like a hub name "owner/model".

    Raises:
        WorkbenchError: `name` is neither, or the folder has no policy.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        if adapter_folder(path) is None:
            _check_checkpoint(path, name)
    elif (
        not re.fullmatch(r"\w[\w.-]*/[\w.-]+", name, re.ASCII)
        or path.parts[0] == "runs"  # a path, even if the folder does not exist
        or Path(path.parts[0]).exists()
    ):
        parent = path.parent if len(path.parts) > 1 and path.parent.is_dir() else Path("runs")
        raise WorkbenchError(
            f"no policy folder '{name}': {describe_runs(parent)}; name a run's or a model's folder,"
            " a hub name owner/model, or on the bench tiny sft or base"
        )


def _check_checkpoint(folder: Path, name: str) -> None:
    """Raise a WorkbenchError if `folder` is not a model's full checkpoint.

    `name` is the folder's name in the message.
    """
    if not (folder / "config.json").is_file():
        raise WorkbenchError(
            f"policy folder '{name}' has neither config.json nor adapter_config.json: {REMEDY}"
        )
    config = read_json(folder / "config.json")
    if config is None:
        raise WorkbenchError(
            f"cannot read '{name}/config.json': it is not a JSON object, or a key occurs twice;"
            " copy it from the original checkpoint again"
        )
    if "method" in config:  # the config of a run; that of a model has "model_type"
        raise WorkbenchError(
            f"the run '{name}' is unfinished: repeat its train command to resume it"
        )


def adapter_folder(path: Path) -> Path | None:
    """Return the folder with a LoRA adapter: `path` or `path/policy`; None if neither has one."""
    return next((p for p in (path, path / "policy") if (p / "adapter_config.json").is_file()), None)


def adapter_base(adapter: Path) -> str:
    """Return the name or folder of an adapter's base model, from its adapter_config.json."""
    config = weights.adapter_config(adapter)
    if not config.get("base_model_name_or_path"):
        raise WorkbenchError(
            f"'{adapter}/adapter_config.json' has no base_model_name_or_path: add it, the"
            " folder or hub name of the base model"
        )
    return str(config["base_model_name_or_path"])
