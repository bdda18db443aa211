"""Questions -> responses: a causal language model and its tokenizer, sampled in batches on CPU or GPU."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.hub import from_disk_or_hub
from workbench.tokens import offsets_from_ids, prefill
from workbench.types import Question, Response, WorkbenchError


@dataclass(frozen=True)
class Policy:
    """A loaded model with its tokenizer. `stop_ids` are the token ids that end a response."""

    name: str
    model: Any
    tokenizer: Any
    stop_ids: tuple[int, ...]

    @property
    def device(self) -> Any:
        return self.model.device


def load_policy(name: str | Path, *, base: str | Path | None = None, device: str | None = None) -> Policy:
    """Load a policy for generation.

    Args:
        name: a local folder (a full checkpoint, or a LoRA adapter, or a run folder with one under `policy/`), or a
            hub name. Only safetensors weights are read and no code from the folder is run.
        base: the model under an adapter; by default the one that the adapter names.
        device: "cpu", "cuda", …; by default the GPU where there is one.

    Raises:
        WorkbenchError: there is no such policy, or it has no weights that can be read.
    """
    import torch

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    adapter = adapter_folder(Path(name))
    folder = str(base or adapter_base(adapter)) if adapter else str(name)
    model, tokenizer = load_checkpoint(folder, device=device)
    if adapter:
        from peft import PeftModel

        # Merged: one matrix product instead of three for every layer of every token.
        model = PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
    return as_policy(str(name), model.eval(), tokenizer)


def as_policy(name: str, model: Any, tokenizer: Any) -> Policy:
    """Wrap a model in memory. Its own sampling defaults are dropped: only what the caller asks for is applied."""
    from transformers import GenerationConfig

    declared = model.generation_config.eos_token_id
    stops = {tokenizer.eos_token_id, *(declared if isinstance(declared, list) else [declared])} - {None}
    model.generation_config = GenerationConfig(
        eos_token_id=sorted(stops), pad_token_id=tokenizer.pad_token_id, bos_token_id=tokenizer.bos_token_id
    )
    return Policy(name, model, tokenizer, tuple(sorted(stops)))


def load_checkpoint(folder: str, *, device: str) -> tuple[Any, Any]:
    """A full checkpoint as (model, tokenizer): fp32 on CPU, bf16 on GPU, whatever is on disk; padding on the left."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    check_policy_name(folder)
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    try:
        tokenizer = from_disk_or_hub(AutoTokenizer.from_pretrained, folder, padding_side="left", truncation_side="left")
        with _quiet_loading():
            model = from_disk_or_hub(AutoModelForCausalLM.from_pretrained, folder, dtype=dtype, use_safetensors=True)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise WorkbenchError(
            f"cannot load policy '{folder}': {reason} — name a folder with config.json, model.safetensors and a tokenizer"
        ) from error
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model.to(device), tokenizer


def check_policy_name(name: str) -> None:
    """Refuse what is neither a policy's folder nor can be a hub name ("owner/model"), before anything is loaded.

    A name whose first part is a local folder, or "runs", is a path and never looked up on the hub.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        if adapter_folder(path) is None:
            _check_checkpoint(path, name)
    elif not re.fullmatch(r"\w[\w.-]*/[\w.-]+", name, re.ASCII) or path.parts[0] == "runs" or Path(path.parts[0]).exists():
        from workbench.train.run import what_is_there

        near = path.parent if len(path.parts) > 1 and path.parent.is_dir() else Path("runs")
        raise WorkbenchError(
            f"no policy folder '{name}': {what_is_there(near)}; name a run's or a model's folder, or a hub name owner/model"
        )


def _check_checkpoint(folder: Path, name: str) -> None:
    """Refuse a folder without an adapter that holds no full checkpoint either."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise WorkbenchError(f"policy folder '{name}' has neither config.json nor adapter_config.json") from None
    except (OSError, ValueError) as error:
        raise WorkbenchError(f"cannot read '{name}/config.json': {error}") from error
    if isinstance(config, dict) and "method" in config:  # a run's; that of a model has "model_type"
        raise WorkbenchError(f"the run '{name}' is unfinished: repeat its train command, and it goes on where it stopped")


def adapter_folder(path: Path) -> Path | None:
    """Where the LoRA adapter of a run folder (or of an adapter folder) lies; None for anything else."""
    return next((p for p in (path, path / "policy") if (p / "adapter_config.json").is_file()), None)


def adapter_base(adapter: Path) -> str:
    """The model that an adapter was trained on, as its adapter_config.json names it."""
    config = json.loads((adapter / "adapter_config.json").read_text())
    if not config.get("base_model_name_or_path"):
        raise WorkbenchError(f"'{adapter}/adapter_config.json' names no base_model_name_or_path: give the base model")
    return str(config["base_model_name_or_path"])


def prompt_ids(tokenizer: Any, questions: Sequence[Question]) -> list[list[int]]:
    """The token ids each question is prompted with, its generation prompt included."""
    conversations = [question.messages() for question in questions]
    if not conversations:
        return []
    encoded = tokenizer.apply_chat_template(conversations, add_generation_prompt=True, tokenize=True, return_dict=True)
    return [list(ids) for ids in encoded["input_ids"]]


def generate(
    policy: Policy,
    questions: Sequence[Question],
    *,
    max_new_tokens: int,
    samples: int = 1,
    greedy: bool = False,
    temperature: float = 1.0,
    top_p: float = 1.0,
    seed: int = 0,
    batch_size: int = 256,
    logprobs: bool = False,
    step: int | None = None,
) -> list[Response]:
    """Answer every question `samples` times; responses come question by question, sample by sample.

    The result depends on the arguments alone: sampling starts from `seed` and the caller's random state is left as it
    was. `logprobs=True` adds each sampled token's log-probability under the policy at temperature 1.

    Raises:
        WorkbenchError: several greedy samples, which would all be the same.
    """
    import torch

    if greedy and samples != 1:
        raise WorkbenchError(f"greedy decoding gives one response a question, not {samples}: use samples=1 or sampling")
    jobs = [(question, sample) for question in questions for sample in range(samples)]
    prompts = [ids for ids in prompt_ids(policy.tokenizer, questions) for _ in range(samples)]
    order = sorted(range(len(jobs)), key=lambda index: -len(prompts[index]))  # longest first: out of memory shows early
    settings: dict[str, Any] = {"do_sample": False}
    if not greedy:
        settings = {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": 0}
    completions: dict[int, list[int]] = {}
    scores: dict[int, tuple[float, ...]] = {}
    with torch.random.fork_rng(devices=_rng_devices(policy)), torch.no_grad():
        torch.manual_seed(seed)
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            sampled = _complete(policy, [prompts[i] for i in batch], max_new_tokens, settings)
            completions.update(zip(batch, sampled, strict=True))
        if logprobs:
            for start in range(0, len(order), 16):  # the logits of a batch are rows × tokens × vocabulary
                batch = order[start : start + 16]
                pairs = [(prompts[i], completions[i]) for i in batch]
                scores.update(zip(batch, token_logprobs(policy, pairs), strict=True))
    return [
        as_response(
            policy.tokenizer, question, completions[index], policy.stop_ids, sample=sample, step=step,
            prompt_ids=prompts[index], logprobs=scores.get(index, ()),
        )
        for index, (question, sample) in enumerate(jobs)
    ]  # fmt: skip


def as_response(
    tokenizer: Any,
    question: Question,
    ids: Sequence[int],
    stop_ids: Sequence[int],
    *,
    sample: int = 0,
    step: int | None = None,
    prompt_ids: Sequence[int] = (),
    logprobs: Sequence[float] = (),
) -> Response:
    """A `Response` from sampled ids (the end token included, if it was sampled).

    Its group is the question; in training, where one question is asked in many steps, the question at that step.
    """
    group = question.id if step is None else f"{question.id}/{step}"
    text, offsets = offsets_from_ids(tokenizer, ids)
    return Response(
        id=f"{group}/{sample}",
        question=question,
        text=text,
        group=group,
        sample=sample,
        step=step,
        prompt_ids=tuple(prompt_ids),
        token_ids=tuple(ids),
        offsets=offsets,
        logprobs=tuple(logprobs),
        finish="stop" if ids and ids[-1] in stop_ids else "length",
        prefill=prefill(tokenizer, prompt_ids),
    )


def token_logprobs(policy: Policy, pairs: Sequence[tuple[list[int], list[int]]]) -> list[tuple[float, ...]]:
    """For each (prompt ids, sampled ids) the log-probability of every sampled id, at temperature 1."""
    import torch

    if not pairs:
        return []
    sequences = [prompt + completion for prompt, completion in pairs]
    input_ids_BT, mask_BT = _left_pad(policy, sequences)
    logits_BTV = policy.model(input_ids=input_ids_BT, attention_mask=mask_BT, use_cache=False).logits[:, :-1]
    logprobs_BTV = torch.log_softmax(logits_BTV.float(), dim=-1)
    sampled_BT = logprobs_BTV.gather(-1, input_ids_BT[:, 1:, None]).squeeze(-1)
    return [tuple(row[len(row) - len(ids) :].tolist()) for row, (_, ids) in zip(sampled_BT, pairs, strict=True)]


def _complete(policy: Policy, prompts: list[list[int]], max_new_tokens: int, settings: dict[str, Any]) -> list[list[int]]:
    from transformers import GenerationConfig

    input_ids_BT, mask_BT = _left_pad(policy, prompts)
    config = GenerationConfig(
        max_new_tokens=max_new_tokens, use_cache=True, repetition_penalty=1.0, num_beams=1,
        eos_token_id=list(policy.stop_ids), pad_token_id=policy.tokenizer.pad_token_id, **settings,
    )  # fmt: skip
    output_BT = policy.model.generate(input_ids=input_ids_BT, attention_mask=mask_BT, generation_config=config)
    return [_until_stop(row, policy.stop_ids) for row in output_BT[:, input_ids_BT.shape[1] :].tolist()]


def _until_stop(ids: list[int], stop_ids: Sequence[int]) -> list[int]:
    """Cut the padding after the first end token; the end token itself stays."""
    return next((ids[: position + 1] for position, token in enumerate(ids) if token in stop_ids), ids)


def _left_pad(policy: Policy, sequences: Sequence[list[int]]) -> tuple[Any, Any]:
    import torch

    width = max(len(ids) for ids in sequences)
    pad = policy.tokenizer.pad_token_id
    ids = [[pad] * (width - len(row)) + row for row in sequences]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in sequences]
    return torch.tensor(ids, device=policy.device), torch.tensor(mask, device=policy.device)


def _rng_devices(policy: Policy) -> list[Any]:
    return [policy.device] if policy.device.type == "cuda" else []


class _quiet_loading:
    """No bar for loading weights where nobody watches: a log would get one line per update."""

    def __enter__(self) -> None:
        from transformers.utils import logging

        self.was_on = logging.is_progress_bar_enabled()
        if not sys.stderr.isatty():
            logging.disable_progress_bar()

    def __exit__(self, *_: Any) -> None:
        from transformers.utils import logging

        if self.was_on:
            logging.enable_progress_bar()
