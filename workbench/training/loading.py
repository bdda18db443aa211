"""The one place that loads a policy for training, by Unsloth on a GPU that has it, by
transformers and PEFT elsewhere, and puts away what was trained."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from workbench.policies.load import check_policy_name, load_checkpoint, load_policy
from workbench.runs.checkpoints import mark_complete
from workbench.training.settings import LoRA
from workbench.types import WorkbenchError
from workbench.util.config import leaves, settings
from workbench.util.disk import cache_folder

LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


@dataclass(frozen=True)
class Trainee:
    """A policy with a trainable LoRA adapter, whose base is in `four_bits` or not. `path` is
    "unsloth" or "plain".
    """

    model: Any
    tokenizer: Any
    path: str
    four_bits: bool = False


def import_unsloth_first() -> bool:
    """Import Unsloth if it can run here. To be called before TRL is first imported, because
    Unsloth patches it.

    Anything that goes wrong means the plain path: with a driver or version that does not suit
    it, Unsloth raises what it likes.
    """
    # Unsloth's own switch, by which its trainer can be checked anywhere. Its `FastLanguageModel`
    # needs CUDA and stays out: the policy is PEFT's on transformers' model.
    on_cpu = os.environ.get("UNSLOTH_ALLOW_CPU") == "1"
    if not has_gpu() and not on_cpu:
        return False
    if "trl" in sys.modules and "unsloth" not in sys.modules:
        print("unsloth: not used, TRL was imported before it", file=sys.stderr)
        return False
    os.environ.setdefault("UNSLOTH_DISABLE_STATISTICS", "1")  # its statistics are a download
    # Its generated sources otherwise go to the working directory.
    os.environ.setdefault("UNSLOTH_COMPILE_LOCATION", compile_folder())
    try:
        # compiled for a CPU, the first loss takes minutes
        if not has_gpu() and os.environ.setdefault("UNSLOTH_COMPILE_DISABLE", "1") == "1":
            import torch._dynamo

            torch._dynamo.config.disable = True
        import unsloth  # noqa: F401
    except Exception as error:  # see the docstring
        if not isinstance(error, ModuleNotFoundError):
            print(
                f"unsloth: not used, {type(error).__name__}: {str(error).splitlines()[:1]}",
                file=sys.stderr,
            )
        return False
    if on_cpu:  # with a GPU, too, Unsloth then leaves TRL as it is
        patch_grpo()
    return True


def has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def compile_folder() -> str:
    """A folder for Unsloth's generated sources that nobody else can write to, because Unsloth
    runs what it finds there.
    """
    try:
        folder = cache_folder() / "unsloth"
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)  # fails for a folder that belongs to another user
        return str(folder)
    except (OSError, RuntimeError):  # no home, or none that can be written
        return tempfile.mkdtemp(prefix="unsloth-")


def load_trainee(
    policy: str,
    *,
    seed: int,
    max_length: int = 4096,
    unsloth: bool | None = None,
    gradient_checkpointing: bool = False,
    **lora: Any,
) -> Trainee:
    """Load `policy` (a folder or hub name) with a fresh LoRA adapter on all linear layers; the
    base is frozen.

    fp32 on CPU, bf16 on GPU, whatever is on disk. The adapter starts as the identity and depends
    on `seed` alone.

    Args:
        max_length: tokens of prompt and response together; only Unsloth needs it.
        unsloth: None takes Unsloth where it runs; True insists on it, False leaves it out.
        gradient_checkpointing: takes hold where the model is in training mode.
        lora: further fields of `workbench.training.settings.LoRA`.

    Raises:
        WorkbenchError: the policy cannot be loaded, or cannot be checkpointed; a base in 4 bits
        on a machine that cannot hold one.
        RuntimeError: Unsloth was insisted on and cannot run.
    """
    import torch

    adapter = LoRA(**lora, gradient_checkpointing=gradient_checkpointing)
    if adapter.load_in_4bit:
        check_machine()
    usable = unsloth is not False and import_unsloth_first()
    from transformers import set_seed  # after Unsloth, which patches it

    if unsloth and not usable:
        raise RuntimeError(
            "Unsloth cannot run here: it needs a CUDA device and `pip install unsloth` before TRL"
            " is used"
        )
    if usable and has_gpu():
        trainee = _load_unsloth(policy, adapter, seed, max_length)
    else:
        set_seed(seed)
        trainee = _load_plain(policy, adapter)
        if usable:
            trainee = replace(trainee, model=fitted(trainee.model), path="unsloth")
    where = torch.cuda.get_device_name() if has_gpu() else "CPU"
    print(
        f"training with {trainee.path} LoRA r={adapter.lora_r}"
        f"{' on a base in 4 bits' if adapter.load_in_4bit else ''} on {where}",
        file=sys.stderr,
    )
    return trainee


def _load_plain(policy: str, adapter: LoRA) -> Trainee:
    from peft import LoraConfig, get_peft_model

    model, tokenizer = load_checkpoint(
        policy,
        device="cuda" if has_gpu() else "cpu",
        quantisation=quantisation() if adapter.load_in_4bit else None,
    )
    config = LoraConfig(
        r=adapter.lora_r,
        lora_alpha=adapter.lora_alpha,
        lora_dropout=0.0,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    model = get_peft_model(model, config)
    if adapter.gradient_checkpointing:
        if not model.get_base_model().supports_gradient_checkpointing:
            raise WorkbenchError(
                f"the layers of '{policy}' cannot be computed again: set"
                " gradient_checkpointing=false"
            )
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return Trainee(model, tokenizer, "plain", adapter.load_in_4bit)


def _load_unsloth(policy: str, adapter: LoRA, seed: int, max_length: int) -> Trainee:
    import torch
    from unsloth import FastLanguageModel

    check_policy_name(policy)
    # its own kind, which keeps layers' inputs in the host's memory
    again = "unsloth" if adapter.gradient_checkpointing else False
    model, tokenizer = FastLanguageModel.from_pretrained(
        policy,
        max_seq_length=positions(policy, max_length),
        dtype=torch.bfloat16,
        load_in_4bit=adapter.load_in_4bit,
        use_exact_model_name=True,
        trust_remote_code=False,
        use_gradient_checkpointing=again,
    )
    model = FastLanguageModel.get_peft_model(
        model,
        r=adapter.lora_r,
        lora_alpha=adapter.lora_alpha,
        lora_dropout=0.0,
        target_modules=LINEAR,
        use_gradient_checkpointing=again,
        random_state=seed,
    )
    tokenizer.padding_side = "left"
    return Trainee(model, tokenizer, "unsloth", adapter.load_in_4bit)


def positions(policy: str, wanted: int) -> int:
    """`wanted` tokens, or as many as `policy` has positions for.

    Unsloth would stretch them over more, and say so in no more than a line of its log: that is
    another policy.
    """
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(policy, trust_remote_code=False).get_text_config()
    return min(wanted, getattr(config, "max_position_embeddings", None) or wanted)


def save_policy(
    trainee: Trainee,
    out: Path,
    name: str = "policy",
    more: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Put the adapter and its tokenizer, with the files that `more` writes and the digests of all
    files, into `out/name`, whole or not at all."""
    partial, final = out / f"{name}.partial", out / name
    shutil.rmtree(partial, ignore_errors=True)
    trainee.model.save_pretrained(str(partial))
    trainee.tokenizer.save_pretrained(str(partial))
    (partial / "README.md").unlink(missing_ok=True)  # an empty model card
    more(partial)
    mark_complete(partial)
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)


def save_merged(trainee: Trainee, out: Path) -> None:
    """Put the policy with its adapter merged into it, a full checkpoint, into `out/policy`,
    whole or not at all.

    The next stage does not start from a base in 4 bits: the adapter is merged into the base as it
    is stored.
    """
    import torch

    if not trainee.four_bits:
        return save_policy(replace(trainee, model=trainee.model.merge_and_unload()), out)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".adapter.") as folder:
        save_policy(trainee, Path(folder))
        merged = load_policy(Path(folder) / "policy", device="cpu").model
        # what a GPU computes in
        save_policy(replace(trainee, model=merged.to(torch.bfloat16)), out)


def check_four_bits(config: Any, idle: Collection[str] = ()) -> None:
    """Raise a WorkbenchError where a part of a config that is not idle wants a base in 4 bits,
    and this machine cannot.
    """
    unused = {leaf for name in idle for leaf in leaves(config, name)}
    for path, wanted, _ in settings(config):
        if path.endswith(".load_in_4bit") and wanted and path not in unused:
            check_machine(path)


def check_machine(name: str = "load_in_4bit") -> None:
    """Raise a WorkbenchError where no base can be held in 4 bits."""
    import torch

    if not torch.cuda.is_available():
        raise WorkbenchError(
            f"{name} is true, which needs a GPU, and there is none here: leave it false"
        )
    if importlib.util.find_spec("bitsandbytes") is None:
        raise WorkbenchError(
            f"{name} is true, which needs bitsandbytes: `pip install -e '.[gpu]'` in a clone, or"
            " leave it false"
        )


def quantisation() -> Any:
    """4-bit normal floats, their constants quantised as well, computed with in bfloat16, as
    QLoRA's authors do.

    What PEFT's `prepare_model_for_kbit_training` does besides is left out: the base is frozen by
    the adapter, checkpointing that is not re-entrant needs no gradients of its input, and norms,
    embeddings and head stay in bfloat16, as they are in 16 bits: in float32 a large vocabulary
    would take back what was saved.
    """
    import torch
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )


def keep_exact(model: Any) -> None:
    """The adapter in float32 again where TRL has made it bfloat16, as it does on a base in 4
    bits: there a step of 1e-6 is rounded away."""
    if getattr(model, "is_loaded_in_4bit", False):
        for weight in model.parameters():
            if weight.requires_grad:
                weight.data = weight.data.float()


def patch_grpo() -> None:
    """What `import unsloth` does to TRL on a GPU, and leaves out under its switch.

    Raises:
        RuntimeError: Unsloth made no trainer, of which it says no more than a line in a log.
    """
    import trl
    from unsloth.models.rl import _patch_trl_rl_trainers

    if not trl.GRPOTrainer.__name__.startswith("Unsloth"):
        _patch_trl_rl_trainers("grpo_trainer")
    if not trl.GRPOTrainer.__name__.startswith("Unsloth"):
        raise RuntimeError("Unsloth made no GRPO trainer of its own")


def fitted(model: Any) -> Any:
    """The model with what `FastLanguageModel` gives its own: the two methods that the trainer
    calls, and the word that it is in float32 by choice, without which the trainer would compute
    in half precision."""
    from unsloth import FastLanguageModel

    model.for_training = partial(FastLanguageModel.for_training, model)
    model.for_inference = partial(FastLanguageModel.for_inference, model)
    model._unsloth_user_float32 = True
    return model
