"""Shapes of models and specifications of GPUs, for `workbench plan`."""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.policies import weights
from workbench.policies.load import check_policy_name
from workbench.types import WorkbenchError
from workbench.util.hub import from_disk_or_hub

if TYPE_CHECKING:
    from transformers import PretrainedConfig

# GPUS: name -> memory in GiB as drivers report it, FLOP/s in bf16, bandwidth in bytes/s
# MODELS: public name -> config
GPUS, MODELS = json.loads(Path(__file__).with_name("plan.json").read_text()).values()
TYPES = ("llama", "qwen2", "qwen3")


@dataclass(frozen=True)
class Shape:
    """The size of a dense decoder model.

    Attributes:
        parameters: number of all weights.
        matrices: number of weights in the linear layers of the decoder blocks.
        sides: sum of the input and output widths of these linear layers. A LoRA adapter on all of
            them has `sides` × rank weights.
        queries: width of a layer's queries, over all heads.
        keys: width of a layer's keys, over all heads.
    """

    config: "PretrainedConfig"
    parameters: int
    matrices: int
    sides: int
    queries: int
    keys: int


def shape_of(policy: str) -> Shape:
    """Return the shape of a model, by its folder or public name, without loading its weights.

    Raises:
        WorkbenchError: there is no such model, or it is not a dense decoder of a known type.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    with weights.loading(policy, f"name a model's folder, or one of {', '.join(MODELS)}"):
        # a base model and its tuned variants have the same shape
        if known := MODELS.get(re.sub(r"-(Instruct|Base)$", "", policy)):
            config = AutoConfig.for_model(**known)
        else:
            check_policy_name(policy)
            config = from_disk_or_hub(AutoConfig.from_pretrained, policy)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
        head = model.model.layers[0].self_attn.head_dim
    unsupported = ("quantization_config", "use_sliding_window", "num_experts")
    if config.model_type not in TYPES or any(getattr(config, key, None) for key in unsupported):
        raise WorkbenchError(
            f"'{policy}' (type {config.model_type}) is not a plain dense model of the types"
            f" {', '.join(TYPES)}: name a model of such a type and about the same size"
        )
    modules = model.model.layers.modules()
    linear = [module.weight.shape for module in modules if isinstance(module, torch.nn.Linear)]
    return Shape(
        config,
        parameters=sum(weight.numel() for weight in model.parameters()),
        matrices=sum(map(math.prod, linear)),
        sides=sum(map(sum, linear)),
        queries=config.num_attention_heads * head,
        keys=config.num_key_value_heads * head,
    )
