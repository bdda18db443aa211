"""vLLM's settings, weights and refusals, tested without vLLM. The rest is in
tests/engines/test_vllm.py.
"""

import contextlib
import importlib.util
import itertools
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tests.helpers.grpo_run as run
from tests.helpers import Cli, examples, refusal
from tests.helpers.errors import raises_error
from workbench.experiments.evaluate import evaluate_policy
from workbench.experiments.probe import probe_policy
from workbench.policies import serve, vllm
from workbench.policies.generate import Sampling
from workbench.policies.load import load_checkpoint, load_policy
from workbench.policies.weights import over
from workbench.training import colocate
from workbench.training.grpo_config import GRPO, check, check_split
from workbench.training.loading import Trainee, save_policy
from workbench.training.unsloth_hooks import choose_unsloth
from workbench.types import WorkbenchError
from workbench.util.config import scaled


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide vLLM, even if it is installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "vllm" else find(name, *more),
    )


@pytest.fixture
def trainee(policy: str) -> Trainee:
    """A model in training with a nonzero adapter."""
    made = run.trainee_of(policy)
    run.perturb(made.model)
    return made


@pytest.mark.usefixtures("absent")
def test_without_vllm_the_error_names_the_remedy(policy: str, tmp_path: Path, cli: Cli) -> None:
    for call in (
        lambda: load_policy(policy, engine="vllm"),
        lambda: evaluate_policy(policy, "validation", "tiny", engine="vllm"),
        lambda: probe_policy(policy, k=2, out=tmp_path / "probe", engine="vllm"),
        lambda: check(scaled(GRPO(), vllm="colocate")),
        lambda: serve.serve(policy),
    ):
        with raises_error(r"vLLM is not installed: `pip install vllm==.*; or "):
            call()
    assert list(tmp_path.iterdir()) == []
    with raises_error("no engine 'llamacpp': choose one of hf, vllm"):
        load_policy(policy, engine="llamacpp")  # type: ignore[arg-type]
    error = refusal(cli("evaluate sft --split validation --engine vllm"))
    assert "or leave --engine at hf" in error
    code, _, err = cli(f"judge serve {policy}")
    assert code == 2 and "use another OpenAI-compatible server" in err


def test_every_completion_has_a_seed_that_depends_on_its_question() -> None:
    def seeds(count: int, **how: Any) -> list[int]:
        return vllm.seeds(Sampling(4, **how), count)

    plain = seeds(6, seed=3)
    assert len(set(plain)) == 6 and plain == seeds(6, seed=3) and plain[:4] == seeds(4, seed=3)
    assert set(plain).isdisjoint(seeds(6, seed=4)) and all(0 <= seed < 2**63 for seed in plain)
    together = seeds(6, samples=2, seeds=(7, 8, 9))
    assert seeds(2, samples=2, seeds=(8,)) == together[2:4]
    assert seeds(3, samples=3, seeds=(8,))[:2] == together[2:4]


def llm(shutdown: Callable[[], None]) -> Any:
    """A stand-in for a vLLM model, with only its shutdown."""
    core = SimpleNamespace(shutdown=shutdown)
    return SimpleNamespace(llm_engine=SimpleNamespace(engine_core=core))


def test_one_model_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With stand-ins for the models of vLLM."""
    monkeypatch.setattr(vllm, "_engines", [])
    ended: list[int] = []
    first, second = (llm(partial(ended.append, number)) for number in (1, 2))
    vllm.register(first)
    vllm.check_registered(first)
    vllm.release()
    vllm.register(second)
    assert ended == [1]
    engine = vllm.Engine(first, 64)
    with raises_error("another model was loaded after this policy: load"):
        vllm.complete(engine, [[1]], [2], Sampling(4))
    with raises_error("a prompt has 64 tokens, and vLLM can read 63"):
        vllm.complete(replace(engine, llm=second), [[1], [1] * 64], [2], Sampling(4))


@pytest.mark.parametrize(("room", "prompt", "new", "fits"), examples("vllm_room"))
def test_completions_truncated_by_memory_are_refused(
    room: int, prompt: int, new: int, fits: bool
) -> None:
    """The model has 100 positions, which end completions in any case."""
    config = SimpleNamespace(
        max_model_len=room, hf_text_config=SimpleNamespace(max_position_embeddings=100)
    )
    sized = SimpleNamespace(llm_engine=SimpleNamespace(model_config=config))
    with (
        contextlib.nullcontext()
        if fits
        else pytest.raises(WorkbenchError, match=f"enough for {room} tokens")
    ):
        vllm.check_room(sized, prompt, new)


def test_a_training_with_vllm_shuts_it_down_and_restores_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vllm, "_engines", [])
    monkeypatch.setenv("MASTER_PORT", "7")
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    ended: list[int] = []
    trainer = SimpleNamespace(vllm_generation=SimpleNamespace(llm=llm(partial(ended.append, 1))))
    config = scaled(GRPO(), vllm="colocate")
    with pytest.raises(KeyError), colocate.engine(config):
        os.environ |= {"LOCAL_RANK": "0", "MASTER_PORT": "8"}
        colocate.register_engine(config, trainer)
        raise KeyError
    assert ended == [1] and "LOCAL_RANK" not in os.environ and os.environ["MASTER_PORT"] == "7"


def test_weights_for_vllm_are_checked_without_reading_them(
    policy: str, trainee: Trainee, tmp_path: Path
) -> None:
    """vLLM silently loads a checkpoint without a matrix, or an adapter without some pairs."""
    import shutil

    from safetensors.torch import load_file, save_file

    model, _ = load_checkpoint(policy, device="meta")
    assert {weight.device.type for weight in model.parameters()} == {"meta"}
    save_policy(trainee, tmp_path)
    over(model, tmp_path / "policy").merge_and_unload()
    for damaged, victim in (
        (tmp_path / "policy" / "adapter_model.safetensors", "lora_B"),
        (tmp_path / "base", "q_proj"),
    ):
        if victim == "q_proj":
            damaged = Path(shutil.copytree(policy, damaged)) / "model.safetensors"
        weights = load_file(damaged)
        save_file(
            {name: w for name, w in weights.items() if victim not in name},
            damaged,
            metadata={"format": "pt"},
        )
        with raises_error("are missing"):
            model, _ = load_checkpoint(
                str(damaged.parent if victim == "q_proj" else policy), device="meta"
            )
            over(model, damaged.parent)


def test_training_gives_vllm_merged_weights_and_does_not_change_the_policy(
    trainee: Trainee,
) -> None:
    import torch

    before = {name: weight.clone() for name, weight in trainee.model.state_dict().items()}
    given = {name: weight.clone() for name, weight in colocate.merged_weights(trainee.model)}
    assert all(
        torch.equal(weight, before[name]) for name, weight in trainee.model.state_dict().items()
    )
    whole = dict(trainee.model.merge_and_unload().named_parameters())
    assert given.keys() == whole.keys() and all(
        torch.allclose(given[name], whole[name], atol=1e-6) for name in whole
    )
    assert not torch.equal(
        given["model.layers.0.self_attn.q_proj.weight"], before[_under("q_proj")]
    )


def _under(name: str) -> str:
    return f"base_model.model.model.layers.0.self_attn.{name}.base_layer.weight"


def test_trl_gets_every_setting_of_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trl import GRPOConfig

    for name in (*vllm.FIXED, *vllm.QUIET):  # restored after the test
        monkeypatch.setenv(name, os.environ.get(name, ""))
    assert colocate.engine_arguments(GRPO()) == {"use_vllm": False}
    wanted = scaled(GRPO(), vllm="colocate", vllm_memory=0.4, vllm_sleep=True)
    given = colocate.engine_arguments(wanted)
    config = GRPOConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False, **given)
    assert {name: getattr(config, name) for name in given} == given
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"


def test_colocated_training_uses_one_process_without_unsloth() -> None:
    config = scaled(GRPO(), vllm="colocate")
    assert choose_unsloth(config, None) is False
    with raises_error("set unsloth to None"):
        choose_unsloth(config, True)
    check_split(config, 1)
    check_split(GRPO(), 2)
    with raises_error("works in one process, not in 2"):
        check_split(config, 2)


def test_a_served_judge_is_on_loopback_and_samples_as_requested(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = partial(serve.arguments, "m/x", port=8001, name="x", memory=0.4)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    on_gpu = arguments(length=None)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    on_cpu = arguments(length=4096)
    for output in (on_gpu, on_cpu):
        pairs = dict(itertools.pairwise(output))
        wanted = "--host 127.0.0.1 --port 8001 --served-model-name x --generation-config vllm"
        wanted += " --load-format safetensors"
        assert pairs.items() >= dict(zip(*[iter(wanted.split())] * 2, strict=True)).items()
        assert "--trust-remote-code" not in output
    gpu, cpu = " ".join(on_gpu), " ".join(on_cpu)
    assert "--gpu-memory-utilization 0.4" in gpu and "--max-model-len auto" in gpu
    assert "--dtype float32 --enforce-eager" in cpu and "--max-model-len 4096" in cpu
    assert "--gpu-memory-utilization" not in cpu


def test_a_judge_is_not_served_on_a_used_port_nor_from_an_adapter(
    trainee: Trainee, tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with raises_error(f"port {port} is not available .* choose another --port"):
            serve.free_port(port)
    assert serve.free_port(port) == port and serve.free_port(0) > 0
    save_policy(trainee, tmp_path)
    with raises_error(r"is an adapter: merge it, `workbench export .* --merged DIR`"):
        serve.serve(str(tmp_path))
