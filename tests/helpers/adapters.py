"""A run's folder with a random adapter that changes the base's answers."""

import shutil
from pathlib import Path
from typing import Any


def adapter_on(base: Path | str, out: Path, *, seed: int = 1, **more: Any) -> Path:
    """Save an adapter on `base` under `out`; `more` are LoRA's settings."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    how: dict[str, Any] = {"r": 4, "target_modules": "all-linear", "init_lora_weights": False}
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    trained = get_peft_model(model, LoraConfig(**{**how, **more}))
    for name, weight in trained.named_parameters():
        # a fully trained module starts as the base's
        if "lora_B" not in name and weight.requires_grad:
            weight.data += torch.randn_like(weight) / 100
    trained.peft_config["default"].base_model_name_or_path = str(base)
    shutil.rmtree(out / "policy", ignore_errors=True)
    trained.save_pretrained(out / "policy")
    return out
