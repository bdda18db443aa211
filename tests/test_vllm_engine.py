"""What can be said of vLLM without it: what it is told, the weights that it is given, and who is
refused it. The rest is in tests/engines/test_vllm.py."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.tiny_model import make_policy
from workbench.experiments.evaluate import evaluate_policy
from workbench.experiments.probe import probe_policy
from workbench.policies import serve, vllm
from workbench.policies.generate import Sampling
from workbench.policies.load import load_checkpoint, load_policy
from workbench.policies.weights import over
from workbench.training import colocate
from workbench.training.grpo_config import GRPO, check, check_split
from workbench.training.loading import Trainee, load_trainee, save_policy
from workbench.training.unsloth_hooks import choose_unsloth
from workbench.types import WorkbenchError
from workbench.util.config import scaled

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No vLLM, also where there is one."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "vllm" else find(name, *more),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def trainee(folder: Path) -> Trainee:
    """A model in training whose adapter is no identity."""
    made = load_trainee(str(folder), lora_r=4, lora_alpha=8, seed=1)
    for name, weight in made.model.named_parameters():
        if "lora_B" in name:
            weight.data.normal_(std=0.3)
    return made


@pytest.mark.usefixtures("absent")
def test_who_asks_for_vllm_where_there_is_none_is_told_what_to_do(
    folder: Path, tmp_path: Path, cli: Cli
) -> None:
    for call in (
        lambda: load_policy(folder, engine="vllm"),
        lambda: evaluate_policy(str(folder), "validation", "tiny", engine="vllm"),
        lambda: probe_policy(str(folder), k=2, out=tmp_path / "probe", engine="vllm"),
        lambda: check(scaled(GRPO(), vllm="colocate")),
        lambda: serve.serve(str(folder)),
    ):
        with pytest.raises(
            WorkbenchError, match=r"vLLM is not installed: `pip install vllm==.*; or "
        ):
            call()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(WorkbenchError, match="no engine 'llamacpp': choose one of hf, vllm"):
        load_policy(folder, engine="llamacpp")  # type: ignore[arg-type]
    code, out, err = cli("evaluate", "sft", "--split", "validation", "--engine", "vllm")
    assert (code, out) == (2, "") and "or leave --engine at hf" in err and err.count("\n") == 1
    code, _, err = cli("judge", "serve", folder)
    assert code == 2 and "use another OpenAI-compatible server" in err


def test_every_completion_has_a_seed_and_those_of_a_question_are_its_own() -> None:
    plain = vllm.seeds(Sampling(4, seed=3), 6)
    assert (
        len(set(plain)) == 6
        and plain == vllm.seeds(Sampling(4, seed=3), 6)
        and plain[:4] == vllm.seeds(Sampling(4, seed=3), 4)
    )
    assert set(plain).isdisjoint(vllm.seeds(Sampling(4, seed=4), 6)) and all(
        0 <= seed < 2**63 for seed in plain
    )
    together = vllm.seeds(Sampling(4, samples=2, seeds=(7, 8, 9)), 6)
    assert vllm.seeds(Sampling(4, samples=2, seeds=(8,)), 2) == together[2:4]
    assert vllm.seeds(Sampling(4, samples=3, seeds=(8,)), 3)[:2] == together[2:4]


def test_one_model_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What vLLM has of a model in its stead: something with a way to end it."""
    from types import SimpleNamespace

    monkeypatch.setattr(vllm, "_engines", [])
    ended: list[int] = []
    first, second = (
        SimpleNamespace(
            llm_engine=SimpleNamespace(
                engine_core=SimpleNamespace(shutdown=partial(ended.append, number))
            )
        )
        for number in (1, 2)
    )
    vllm.register(first)
    vllm.check_registered(first)
    vllm.release()
    vllm.register(second)
    assert ended == [1]
    engine = vllm.Engine(first, 64)
    with pytest.raises(WorkbenchError, match="another one was loaded after this policy: load"):
        vllm.complete(engine, [[1]], [2], Sampling(4))
    with pytest.raises(WorkbenchError, match="a prompt has 64 tokens, and vLLM can read 63"):
        vllm.complete(replace(engine, llm=second), [[1], [1] * 64], [2], Sampling(4))


@pytest.mark.parametrize(
    ("room", "prompt", "new", "fits"),
    [(64, 20, 44, True), (64, 20, 45, False), (100, 20, 500, True), (64, 63, 2, False)],
)
def test_completions_that_memory_would_cut_short_are_refused(
    room: int, prompt: int, new: int, fits: bool
) -> None:
    """Of a model with 100 positions, at which completions end in any case."""
    from types import SimpleNamespace

    config = SimpleNamespace(
        max_model_len=room, hf_text_config=SimpleNamespace(max_position_embeddings=100)
    )
    llm = SimpleNamespace(llm_engine=SimpleNamespace(model_config=config))
    with (
        contextlib.nullcontext()
        if fits
        else pytest.raises(WorkbenchError, match=f"enough for {room} tokens")
    ):
        vllm.check_room(llm, prompt, new)


def test_a_training_with_vllm_ends_it_and_leaves_the_environment_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from types import SimpleNamespace

    monkeypatch.setattr(vllm, "_engines", [])
    monkeypatch.setenv("MASTER_PORT", "7")
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    ended: list[int] = []
    engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=partial(ended.append, 1)))
    trainer = SimpleNamespace(
        vllm_generation=SimpleNamespace(llm=SimpleNamespace(llm_engine=engine))
    )
    config = scaled(GRPO(), vllm="colocate")
    with pytest.raises(KeyError), colocate.engine(config):
        os.environ |= {"LOCAL_RANK": "0", "MASTER_PORT": "8"}
        colocate.register_engine(config, trainer)
        raise KeyError
    assert ended == [1] and "LOCAL_RANK" not in os.environ and os.environ["MASTER_PORT"] == "7"


def test_what_vllm_is_to_load_is_checked_without_being_read(
    folder: Path, trainee: Trainee, tmp_path: Path
) -> None:
    """vLLM loads a checkpoint without one of its matrices, and an adapter without some of its
    pairs, as if it were whole.
    """
    import shutil

    from safetensors.torch import load_file, save_file

    model, _ = load_checkpoint(str(folder), device="meta")
    assert {weight.device.type for weight in model.parameters()} == {"meta"}
    save_policy(trainee, tmp_path)
    over(model, tmp_path / "policy").merge_and_unload()
    for damaged, victim in (
        (tmp_path / "policy" / "adapter_model.safetensors", "lora_B"),
        (tmp_path / "base", "q_proj"),
    ):
        if victim == "q_proj":
            damaged = Path(shutil.copytree(folder, damaged)) / "model.safetensors"
        weights = load_file(damaged)
        save_file(
            {name: w for name, w in weights.items() if victim not in name},
            damaged,
            metadata={"format": "pt"},
        )
        with pytest.raises(WorkbenchError, match="are missing"):
            model, _ = load_checkpoint(
                str(damaged.parent if victim == "q_proj" else folder), device="meta"
            )
            over(model, damaged.parent)


def test_what_vllm_is_given_in_training_is_the_merged_model_and_leaves_the_trained_one_alone(
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


def test_trl_is_given_every_setting_of_vllm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trl import GRPOConfig

    for name in (*vllm.FIXED, *vllm.QUIET):  # restored after the test
        monkeypatch.setenv(name, os.environ.get(name, ""))
    assert colocate.engine_arguments(GRPO()) == {"use_vllm": False}
    wanted = scaled(GRPO(), vllm="colocate", vllm_memory=0.4, vllm_sleep=True)
    given = colocate.engine_arguments(wanted)
    config = GRPOConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False, **given)
    assert {name: getattr(config, name) for name in given} == given
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"vllm_memory": 0.0}, "a share of the GPU's memory"),
        ({"vllm_memory": 1.0}, "a share of the GPU's memory"),
        ({"top_p": 0.9}, "use top_p=1, or vllm=none"),
        ({"vllm": "server"}, "choose one of none, colocate"),
    ],
)
def test_colocated_settings_that_cannot_work_are_refused(
    setting: dict[str, Any], reason: str
) -> None:
    with pytest.raises(WorkbenchError, match=reason):
        check(scaled(scaled(GRPO(), vllm="colocate"), **setting))


def test_colocated_training_is_plain_and_of_one_process() -> None:
    config = scaled(GRPO(), vllm="colocate")
    assert choose_unsloth(config, None) is False
    with pytest.raises(WorkbenchError, match="leave unsloth out"):
        choose_unsloth(config, True)
    check_split(config, 1)
    check_split(GRPO(), 2)
    with pytest.raises(WorkbenchError, match="works in one process, not in 2"):
        check_split(config, 2)


def test_a_served_judge_is_for_this_machine_and_samples_as_it_is_asked() -> None:
    on_gpu = serve.arguments("m/x", port=8001, name="x", memory=0.4, length=None, on_gpu=True)
    on_cpu = serve.arguments("m/x", port=8001, name="x", memory=0.4, length=4096, on_gpu=False)
    for told in (on_gpu, on_cpu):
        pairs = dict(itertools.pairwise(told))
        assert (
            pairs["--host"] == "127.0.0.1"
            and pairs["--port"] == "8001"
            and pairs["--served-model-name"] == "x"
        )
        assert pairs["--generation-config"] == "vllm" and pairs["--load-format"] == "safetensors"
        assert "--trust-remote-code" not in told
    assert "--gpu-memory-utilization 0.4" in " ".join(
        on_gpu
    ) and "--max-model-len auto" in " ".join(on_gpu)
    assert "--dtype float32 --enforce-eager" in " ".join(
        on_cpu
    ) and "--max-model-len 4096" in " ".join(on_cpu)
    assert "--gpu-memory-utilization" not in on_cpu


def test_a_judge_is_not_served_where_something_listens_nor_as_an_adapter(
    trainee: Trainee, tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            WorkbenchError, match=f"port {port} is not available .* choose another --port"
        ):
            serve.free_port(port)
    assert serve.free_port(port) == port and serve.free_port(0) > 0
    save_policy(trainee, tmp_path)
    with pytest.raises(
        WorkbenchError, match=r"is an adapter: merge it, `workbench export .* --merged DIR`"
    ):
        serve.serve(str(tmp_path))
