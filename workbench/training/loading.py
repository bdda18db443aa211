"""Load a policy with a LoRA adapter for training, and save the trained policy.

Policies are loaded by Unsloth if it runs here, otherwise by transformers and PEFT.
"""

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.policies.hf import SMALL
from workbench.policies.load import check_policy_name, load_checkpoint, load_policy
from workbench.runs.checkpoints import mark_complete
from workbench.training.settings import LoRA
from workbench.types import WorkbenchError
from workbench.util.config import leaves, settings
from workbench.util.disk import cache_folder
from workbench.util.memory import return_freed_memory

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from peft import PeftModel
    from transformers import BitsAndBytesConfig, PreTrainedTokenizerBase

# (ours) all linear layers of Llama and Qwen; Unsloth has no "all-linear"
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


@dataclass(frozen=True)
class Trainee:
    """A policy with a trainable LoRA adapter.

    Attributes:
        path: the libraries that train the policy: "unsloth", or "plain" (transformers and PEFT).
        four_bits: whether the base model's weights are held in 4 bits.
    """

    model: "PeftModel"
    tokenizer: "PreTrainedTokenizerBase"
    path: str
    four_bits: bool = False


def import_unsloth_first() -> bool:
    """Import Unsloth if it runs on this machine, and return whether it was imported.

    Call this before TRL is first imported, because Unsloth patches TRL. If the import fails, the
    result is False.
    """
    # UNSLOTH_ALLOW_CPU is Unsloth's switch for tests of its trainer without a GPU. Then the model
    # is still loaded by transformers and PEFT, because `FastLanguageModel` needs CUDA.
    on_cpu = os.environ.get("UNSLOTH_ALLOW_CPU") == "1"
    if not has_gpu() and not on_cpu:
        return False
    if "trl" in sys.modules and "unsloth" not in sys.modules:
        print("unsloth: not used, because TRL was imported before Unsloth", file=sys.stderr)
        return False
    os.environ.setdefault("UNSLOTH_DISABLE_STATISTICS", "1")  # its statistics are a download
    # its generated sources otherwise go to the working directory
    os.environ.setdefault("UNSLOTH_COMPILE_LOCATION", compile_folder())
    try:
        # compiling the first loss for a CPU takes minutes
        if not has_gpu() and os.environ.setdefault("UNSLOTH_COMPILE_DISABLE", "1") == "1":
            import torch._dynamo

            torch._dynamo.config.disable = True
        import unsloth  # noqa: F401
    except Exception as error:  # it raises many types for an unsuitable driver or version
        if not isinstance(error, ModuleNotFoundError):
            print(
                f"unsloth: not used, {type(error).__name__}: {str(error).splitlines()[:1]}",
                file=sys.stderr,
            )
        return False
    if on_cpu:  # with this switch Unsloth leaves TRL unpatched, on a GPU too
        patch_trl()
    return True


def has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def compile_folder() -> str:
    """Return a folder for the source files that Unsloth generates.

    Unsloth runs these files, so only this user can write to the folder.
    """
    try:
        folder = cache_folder() / "unsloth"
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)  # fails for a folder that belongs to another user
        return str(folder)
    except (OSError, RuntimeError):  # no home folder, or not writable
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
    """Load `policy` (a folder or hub name) for training with a new LoRA adapter.

    The adapter is on all linear layers, and the base model is frozen. The base weights are bfloat16
    on a GPU and float32 on a CPU (or the type in the environment variable WORKBENCH_DTYPE). The new
    adapter depends only on `seed`, and does not change the model's outputs before its first update.

    Args:
        max_length: largest number of tokens of prompt and response together; only for Unsloth.
        unsloth: None uses Unsloth if it runs here; True requires Unsloth, False excludes it.
        gradient_checkpointing: recompute activations in the backward pass, to save memory.
        lora: `lora_r` (rank, 16), `lora_alpha` (scale, 32) and `load_in_4bit` (False), fields of
            `workbench.training.settings.LoRA`.

    Raises:
        WorkbenchError: the policy cannot be loaded, it does not support gradient checkpointing, or
            this machine cannot hold weights in 4 bits.
        RuntimeError: Unsloth is required and does not run here.
    """
    import torch

    adapter = LoRA(**lora, gradient_checkpointing=gradient_checkpointing)
    if adapter.load_in_4bit:
        check_machine()
    usable = unsloth is not False and import_unsloth_first()
    from transformers import set_seed  # after Unsloth, which patches it

    if unsloth and not usable:
        raise RuntimeError(
            "unsloth is True, but Unsloth cannot run here: it needs a CUDA device, and must be"
            " installed (`pip install unsloth`) and imported before TRL; or set unsloth to None"
        )
    if usable and has_gpu():
        trainee = _load_unsloth(policy, adapter, seed, max_length)
    else:
        set_seed(seed)  # the first matrix of a new adapter is random
        trainee = _load_plain(policy, adapter)
        if trainee.model.num_parameters() >= SMALL:  # a tiny model would be a third slower
            return_freed_memory()
        if usable:
            trainee = replace(trainee, model=with_unsloth_methods(trainee.model), path="unsloth")
    device = torch.cuda.get_device_name() if has_gpu() else "CPU"
    print(
        f"training with {trainee.path} LoRA r={adapter.lora_r}"
        f"{' on a base in 4 bits' if adapter.load_in_4bit else ''} on {device}",
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
        lora_dropout=0.0,  # with dropout the ratio of an unchanged policy would not be 1
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    model = get_peft_model(model, config)
    if adapter.gradient_checkpointing:
        if not model.get_base_model().supports_gradient_checkpointing:
            raise WorkbenchError(
                f"'{policy}' does not support gradient checkpointing: set"
                " gradient_checkpointing=false"
            )
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return Trainee(model, tokenizer, "plain", adapter.load_in_4bit)


def _load_unsloth(policy: str, adapter: LoRA, seed: int, max_length: int) -> Trainee:
    import torch
    from unsloth import FastLanguageModel

    check_policy_name(policy)
    if os.environ.get("UNSLOTH_COMPILE_DISABLE", "0") == "0":
        print(
            "unsloth: the first step compiles the loss, which took more than 4 minutes on an H200;"
            " UNSLOTH_COMPILE_DISABLE=1 leaves this out",
            file=sys.stderr,
        )
    # Unsloth's own kind of checkpointing moves the layers' inputs to the host's memory
    checkpointing = "unsloth" if adapter.gradient_checkpointing else False
    model, tokenizer = FastLanguageModel.from_pretrained(
        policy,
        max_seq_length=positions(policy, max_length),
        dtype=torch.bfloat16,
        load_in_4bit=adapter.load_in_4bit,
        use_exact_model_name=True,  # else Unsloth may load its own quantised copy of the model
        trust_remote_code=False,
        use_gradient_checkpointing=checkpointing,
    )
    model = FastLanguageModel.get_peft_model(
        model,
        r=adapter.lora_r,
        lora_alpha=adapter.lora_alpha,
        lora_dropout=0.0,
        target_modules=LINEAR,
        use_gradient_checkpointing=checkpointing,
        random_state=seed,
    )
    tokenizer.padding_side = "left"
    return Trainee(model, tokenizer, "unsloth", adapter.load_in_4bit)


def positions(policy: str, wanted: int) -> int:
    """Return the smaller of `wanted` and the context length of `policy`, both in tokens."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(policy, trust_remote_code=False).get_text_config()
    # for longer inputs Unsloth would rescale the position encoding, which changes the policy
    return min(wanted, getattr(config, "max_position_embeddings", None) or wanted)


def save_policy(
    trainee: Trainee,
    out: Path,
    name: str = "policy",
    more: Callable[[Path], None] = lambda folder: None,
) -> None:
    """Save the adapter and its tokenizer to `out/name`, completely or not at all.

    Digests of the files are saved too, so that a later load detects damage.

    Args:
        more: function that gets the folder, and writes further files to it before it is complete.
    """
    partial, final = out / f"{name}.partial", out / name
    shutil.rmtree(partial, ignore_errors=True)
    # to a temporary name first: a kill must not leave half a policy under the final name
    trainee.model.save_pretrained(str(partial))
    trainee.tokenizer.save_pretrained(str(partial))
    (partial / "README.md").unlink(missing_ok=True)  # an empty model card
    more(partial)
    mark_complete(partial)  # digests of all files, so it is last
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)


def save_merged(trainee: Trainee, out: Path) -> None:
    """Merge the adapter into the base model, and save this full checkpoint to `out/policy`.

    The folder is written completely or not at all. If the base model is in 4 bits, the adapter is
    merged into the original weights instead, and the result is saved in bfloat16.
    """
    import torch

    if not trainee.four_bits:
        return save_policy(replace(trainee, model=trainee.model.merge_and_unload()), out)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".adapter.") as folder:
        save_policy(trainee, Path(folder))
        # on the CPU: the GPU still holds the 4-bit model and may be too small for both
        merged = load_policy(Path(folder) / "policy", device="cpu").model
        # the type in which a GPU computes
        save_policy(replace(trainee, model=merged.to(torch.bfloat16)), out)


def check_four_bits(config: "DataclassInstance", idle: Collection[str] = ()) -> None:
    """Raise a WorkbenchError if `config` sets `load_in_4bit` and this machine does not support it.

    Args:
        idle: dotted paths of settings that this run does not use, such as "dpo". They are not
            checked.
    """
    unused = {leaf for name in idle for leaf in leaves(config, name)}
    for path, value, _ in settings(config):
        if path.endswith(".load_in_4bit") and value and path not in unused:
            check_machine(path)


def check_machine(name: str = "load_in_4bit") -> None:
    """Raise a WorkbenchError if this machine cannot hold weights in 4 bits.

    Weights in 4 bits need a GPU and bitsandbytes. `name` is the setting's name in the message.
    """
    if not has_gpu():
        raise WorkbenchError(
            f"{name} is true, which needs a GPU, and this machine has none: set it to false"
        )
    if importlib.util.find_spec("bitsandbytes") is None:
        raise WorkbenchError(
            f"{name} is true, which needs bitsandbytes: `pip install -e '.[gpu]'` in a clone, or"
            " leave it false"
        )


def quantisation() -> "BitsAndBytesConfig":
    """Return QLoRA's settings for quantisation (arXiv 2305.14314).

    Weights are 4-bit normal floats, the quantisation constants are quantised too, and computation
    is in bfloat16.
    """
    import torch
    from transformers import BitsAndBytesConfig

    # PEFT's `prepare_model_for_kbit_training` is not used: it converts norms, embeddings and head
    # to float32, which for a large vocabulary uses the memory that 4-bit weights save

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )


def patch_trl() -> None:
    """Replace TRL's GRPO, SFT and DPO trainers by Unsloth's.

    `import unsloth` already does this, unless UNSLOTH_ALLOW_CPU is set.

    Raises:
        RuntimeError: Unsloth did not replace a trainer. Unsloth itself only logs this.
    """
    import trl
    from unsloth.models.rl import _patch_trl_rl_trainers

    for kind in ("GRPO", "SFT", "DPO"):
        name = f"{kind}Trainer"
        if not getattr(trl, name).__name__.startswith("Unsloth"):
            _patch_trl_rl_trainers(f"{kind.lower()}_trainer")
        if not getattr(trl, name).__name__.startswith("Unsloth"):
            raise RuntimeError(
                f"Unsloth did not replace TRL's {name}: install the versions of trl and unsloth in"
                " pyproject.toml, or uninstall unsloth"
            )


def with_unsloth_methods(model: "PeftModel") -> "PeftModel":
    """Add the attributes that Unsloth's trainer expects to `model`, and return `model`.

    They are the methods `for_training` and `for_inference`, and a flag for computation in float32.
    """
    from unsloth import FastLanguageModel

    model.for_training = partial(FastLanguageModel.for_training, model)
    model.for_inference = partial(FastLanguageModel.for_inference, model)
    model._unsloth_user_float32 = True
    return model
