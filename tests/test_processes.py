"""Training on several processes: the documented script and configs; two processes equal one."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import ROOT, read_json, run_python, without
from tests.helpers.credit import steps_of
from tests.helpers.errors import raises_error
from workbench.policies.generate import Sampling
from workbench.runs.store import iter_feedback
from workbench.training.grpo import check_processes, check_unsharded
from workbench.types import Feedback, JsonObject

PAGE = (ROOT / "docs" / "scaling.md").read_text()
SMALL = (
    "steps=3 prompts_per_step=4 group_size=4 max_new_tokens=16 micro_batch=2 advantages=whiten"
    " gradient_checkpointing=true"  # the default except for tiny models
).split()


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.S | re.M)[number]


def trained(folder: Path, count: int) -> Path:
    """Train with the documented script on this number of processes."""
    (folder / "train.py").write_text(block("python"))
    launcher = f"torch.distributed.run --nproc-per-node {count} --master-port {port()}".split()
    settings = [f"truthrl.{setting}" for setting in SMALL]
    assert run_script(folder, *launcher, "train.py", count, *settings).count("done") == count
    return folder / str(count)


def run_script(folder: Path, *words: object, **more: str) -> str:
    """Run a launcher of a documented script in a folder; return its stdout."""
    env = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **more}
    done = run_python("-m", *words, cwd=folder, timeout=500, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def moments(out: Path) -> Any:
    """Adam's first moments after the last step, one number per weight."""
    import torch

    states = torch.load(out / "checkpoints" / "checkpoint-3" / "optimizer.pt", weights_only=True)[
        "state"
    ]
    return torch.cat([states[number]["exp_avg"].flatten() for number in sorted(states)])


def adapter(out: Path, file: str = "policy/adapter_model.safetensors") -> Any:
    import torch
    from safetensors.torch import load_file

    weights = load_file(out / file)
    return torch.cat([weights[name].flatten() for name in sorted(weights)])


@pytest.mark.slow
def test_two_processes_equal_one(tmp_path: Path) -> None:
    """Samples, rewards and weights on the tiny bench are equal; whitening uses the whole batch.

    Gradients are sums in another order and differ by rounding. Adam divides a weight's first
    gradient by its own size. If this is rounding itself, below ε = 1e-8, the weight's first step is
    any share of the learning rate, 4e-4. In float64 no weight differs by 1e-5.
    """
    one, two = trained(tmp_path, 1), trained(tmp_path, 2)
    rows: list[list[Feedback]] = [
        sorted(iter_feedback(out), key=lambda row: row.response.id) for out in (one, two)
    ]
    assert len(rows[0]) == len(rows[1]) == 48 and len({row.response.text for row in rows[0]}) > 4
    for alone, shared in zip(*rows, strict=True):
        assert (alone.response.id, alone.response.token_ids) == (
            shared.response.id,
            shared.response.token_ids,
        )
        assert alone.rewards["truthrl"].value == shared.rewards["truthrl"].value
        assert alone.response.advantages == pytest.approx(shared.response.advantages, abs=1e-5)
        assert alone.response.logprobs == pytest.approx(shared.response.logprobs, abs=1e-4)
    for alone, shared in zip(steps_of(one), steps_of(two), strict=True):
        # a mean over the processes' token means
        entropies = alone.pop("entropy"), shared.pop("entropy")
        assert entropies[0] == pytest.approx(entropies[1], rel=0.1)
        assert alone == pytest.approx(shared, abs=1e-5)
    means = moments(one), moments(two)
    assert (means[0] - means[1]).abs().max() < 1e-4 * means[0].abs().max()
    apart = (adapter(one) - adapter(two)).abs()
    assert (apart > 1e-5).float().mean() < 1e-4 and apart.max() < 4e-4


def launched(folder: Path, name: str, *launcher: str, **more: str) -> Path:
    """The output of the documented script for TRL's trainer: four steps of two processes."""
    (folder / "train_trl.py").write_text(block("python", 1))
    run_script(folder, *launcher, "train_trl.py", name, 4, **more)
    return folder / name


def in_parts(folder: Path, name: str, config: str, **more: str) -> Path:
    """As `launched`, with a documented config that shards the model."""
    (folder / f"{name}.yaml").write_text(config)
    how = (
        f"--config_file {name}.yaml --num_processes 2 --mixed_precision no --main_process_port"
        f" {port()}".split()
    )
    return launched(
        folder, name, "accelerate.commands.launch", *how, "-m", "tests.helpers.cpu_ranks", **more
    )


def whole(folder: Path) -> Path:
    """As `launched`, each process with the whole model."""
    how = f"--nproc-per-node 2 --master-port {port()}".split()
    return launched(folder, "whole", "torch.distributed.run", *how, ACCELERATE_USE_CPU="true")


def port() -> int:
    return 29500 + os.getpid() % 2000


def logged(out: Path) -> list[JsonObject]:
    rows = read_json(out / "trainer_state.json")["log_history"]
    return [without(row, "step_time") for row in rows if "loss" in row]


def check_parts_are_the_whole(parts: Path, wholes: Path) -> float:
    """Check that two processes with shards sample and learn as two with the whole model.

    Responses differ in length, so a process with finished responses must wait for the other.
    Returns the largest difference of an adapter weight.
    """
    steps = logged(wholes)
    assert len(steps) == 4 and any(step["grad_norm"] > 0.1 for step in steps)
    assert any(step["completions/min_length"] < step["completions/max_length"] for step in steps)
    for ours, theirs in zip(logged(parts), steps, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)
    first, second = (adapter(out, "adapter_model.safetensors") for out in (parts, wholes))
    assert first.shape == second.shape and first.abs().max() > 0
    apart = float((first - second).abs().max())
    assert apart < 1e-5
    return apart


@pytest.mark.slow
def test_fsdp2_equals_training_the_whole_model(tmp_path: Path) -> None:
    """The wrapping, gathering and saving code is the one used on GPUs, see
    tests/helpers/cpu_ranks.py."""
    check_parts_are_the_whole(in_parts(tmp_path, "fsdp2", block("yaml", 1)), whole(tmp_path))


@pytest.mark.parametrize("number", range(3))
def test_accelerate_reads_the_configs_of_the_page(tmp_path: Path, number: int) -> None:
    from accelerate.commands.config.config_args import load_config_from_file
    from accelerate.utils import DistributedType

    (tmp_path / "config.yaml").write_text(block("yaml", number))
    config = load_config_from_file(str(tmp_path / "config.yaml"))
    kinds = (DistributedType.MULTI_GPU, DistributedType.FSDP, DistributedType.DEEPSPEED)
    assert config.distributed_type == kinds[number] and config.num_processes == 8


def test_a_part_of_a_batch_has_the_samples_of_the_whole(policy: str) -> None:
    """Half of the prompts, with their row numbers in the order of the whole batch."""
    from workbench.policies import hf
    from workbench.policies.load import load_policy

    model = load_policy(policy).model
    prompts = [[7, 8, 9], [7, 8], [9, 7, 8, 9], [7, 8], [8, 9, 9], [9]]
    how = {"max_new_tokens": 8, "seed": 3}
    whole = hf.complete(model, 0, prompts, [1], Sampling(**how))  # type: ignore[arg-type]
    places = {number: place for place, number in enumerate(hf.longest_first(prompts))}
    rows = tuple(places[number] for number in (3, 4, 5))
    assert hf.complete(model, 0, prompts[3:], [1], Sampling(**how, rows=rows)) == whole[3:]  # type: ignore[arg-type]
    assert hf.complete(model, 0, prompts[3:], [1], Sampling(**how)) != whole[3:]  # type: ignore[arg-type]


@pytest.mark.parametrize("variable", ["ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED"])
def test_sharded_models_are_refused(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    check_unsharded()
    monkeypatch.setenv(variable, "true")
    with raises_error(
        r"needs the whole model in every process: save the ddp.yaml of docs/scaling.md"
    ):
        check_unsharded()


def test_a_run_resumes_with_the_same_number_of_processes(tmp_path: Path) -> None:
    check_processes(None, 2)
    (tmp_path / "rng_state.pth").touch()
    check_processes(tmp_path, 1)
    with raises_error("started with 1 processes, not 2"):
        check_processes(tmp_path, 2)
    (tmp_path / "rng_state.pth").unlink()
    for rank in (0, 1):
        (tmp_path / f"rng_state_{rank}.pth").touch()
    check_processes(tmp_path, 2)
    with raises_error("started with 2 processes, not 1"):
        check_processes(tmp_path, 1)
