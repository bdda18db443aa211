"""verl 0.9.1's reward loop, agent loop and advantages with ours, from the config in docs/verl.md to
a batch's advantages. Only its LLM server, its queue between processes and Ray's transport are
replaced; nothing is trained.
"""

import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.engines.environment import ROOT, needs
from tests.engines.measured import store
from tests.helpers.errors import raises_error
from workbench.scoring.verl_rows import row_of
from workbench.types import JsonObject, Question

pytestmark = needs("verl")

Compose = Callable[..., Any]


@pytest.fixture
def compose(policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compose:
    """verl's config with the page's two files, judged by the closed world."""
    import hydra
    import verl.trainer
    from hydra.core.global_hydra import GlobalHydra

    monkeypatch.chdir(tmp_path)
    training, agent = re.findall(
        r"^```yaml\n(.*?)^```$", (ROOT / "docs" / "verl.md").read_text(), re.S | re.M
    )
    (tmp_path / "training.yaml").write_text(training)
    (tmp_path / "agent.yaml").write_text(agent)
    own = [
        f"hydra.searchpath=[file://{Path(verl.trainer.__path__[0]) / 'config'}]",
        f"actor_rollout_ref.model.path={policy}",
        "actor_rollout_ref.rollout.name=vllm",
        "actor_rollout_ref.rollout.prompt_length=96",
        "actor_rollout_ref.rollout.response_length=96",
        "reward.reward_kwargs.judge=world",
        "reward.reward_kwargs.settings=[]",
        "actor_rollout_ref.rollout.n=2",
    ]

    def made(*overrides: str) -> Any:
        GlobalHydra.instance().clear()
        with hydra.initialize_config_dir(config_dir=str(tmp_path), version_base=None):
            return hydra.compose(config_name="training", overrides=[*own, *overrides])

    return made


class Queue:
    """verl's TransferQueue for one process: rows by key, and their status."""

    def __init__(self) -> None:
        self.rows: dict[str, JsonObject] = {}
        self.statuses: dict[str, str] = {}  # a prompt's status

    async def async_kv_put(self, key: str, partition_id: str, tag: JsonObject) -> None:
        self.statuses[key] = tag["status"]

    async def async_kv_batch_put(
        self, keys: Sequence[str], fields: Any, tags: Sequence[Any], partition_id: str
    ) -> None:
        self.kv_batch_put(keys, partition_id, fields)

    def kv_batch_put(self, keys: Sequence[str], partition_id: str, fields: Any) -> None:
        for number, key in enumerate(keys):
            row = {name: fields[name][number] for name in list(fields.keys())}
            self.rows.setdefault(key, {}).update(
                {name: getattr(value, "data", value) for name, value in row.items()}
            )

    def kv_batch_get(
        self, keys: Sequence[str], partition_id: str, select_fields: Sequence[str]
    ) -> Any:
        """As nested tensors, of any lengths."""
        import torch
        from verl.utils.tensordict_utils import list_of_dict_to_tensordict

        there = [name for name in select_fields if name in self.rows[keys[0]]]
        fields = list_of_dict_to_tensordict(
            [{name: self.rows[key][name] for name in there} for key in keys]
        )
        for name in there:
            if isinstance(fields[name], torch.Tensor) and not fields[name].is_nested:
                fields[name] = torch.nested.as_nested_tensor(
                    list(fields[name]), layout=torch.jagged
                )
        return fields


class Rollout:
    """verl's agent loop worker with a scripted LLM server and a reward worker in this process."""

    def __init__(self, config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        from verl.experimental.agent_loop.agent_loop import AgentLoopWorker
        from verl.experimental.reward_loop.reward_loop import RewardLoopWorker
        from verl.trainer.ppo.v1 import agent_loop_tq, trainer_base

        self.config, self.queue, self.said = config, Queue(), list[str]()
        for module in (agent_loop_tq, trainer_base):
            monkeypatch.setattr(module, "tq", self.queue)
        self.trainer = trainer_base.PPOTrainer
        self.rewards = RewardLoopWorker(config)
        self.tokenizer = self.rewards.input_tokenizer
        queued = agent_loop_tq.AgentLoopWorkerTQ.__ray_metadata__.modified_class

        class Worker(AgentLoopWorker):
            _run_prompt = queued._run_prompt
            _agent_loop_postprocess = queued._agent_loop_postprocess

        handle = SimpleNamespace(compute_score=SimpleNamespace(remote=self.rewards.compute_score))
        server = SimpleNamespace(generate=self._generate)
        self.worker = Worker(config, server, reward_loop_worker_handles=[handle])

    async def _generate(self, **_: Any) -> Any:
        from verl.workers.rollout.replica import TokenOutput

        return TokenOutput(token_ids=self.ids(self.said.pop()))

    def ids(self, text: str) -> list[int]:
        return [
            *self.tokenizer(text, add_special_tokens=False)["input_ids"],
            self.tokenizer.eos_token_id,
        ]

    def answer(self, question: Question, *texts: str, uid: str = "u") -> dict[str, str]:
        """The keys, by text, of verl's rows for these answers to one question (one group)."""
        from omegaconf import open_dict

        row, self.said = row_of(question), list(texts)
        agent = self.config.actor_rollout_ref.rollout.agent.default_agent_loop
        prompt = {
            **row,
            "raw_prompt": row["prompt"],
            "uid": uid,
            "global_steps": 1,
            "index": 0,
            "agent_name": agent,
        }
        trajectory = {"step": 1, "sample_index": 0, "rollout_n": 0, "validate": False}
        with open_dict(self.config):
            self.config.actor_rollout_ref.rollout.n = len(texts)
        self.rewards.loop.run_until_complete(self.worker._run_prompt(prompt, {}, trajectory))
        return {
            self.text(row): key for key, row in self.queue.rows.items() if key.startswith(f"{uid}_")
        }

    def text(self, row: Any) -> str:
        return self.tokenizer.decode(row["responses"], skip_special_tokens=True)

    def learn(self, keys: Iterable[str]) -> None:
        """The trainer's step from the queue's rewards to its advantages."""
        from transfer_queue import KVBatchMeta

        keys = list(keys)
        batch = KVBatchMeta(partition_id="train", keys=keys, tags=[{} for _ in keys])
        self.trainer._compute_advantage(SimpleNamespace(config=self.config), batch, {})


def assert_all(row: JsonObject, advantage: float, tolerance: float) -> None:
    """Check that every token of a row has this advantage."""
    assert row["advantages"].tolist() == pytest.approx(
        [advantage] * len(row["advantages"]), abs=tolerance
    )


def test_verl_accepts_the_settings_of_the_page(compose: Compose) -> None:
    """verl loads the reward manager by name, with and without the page's judge, and creates no
    critic.
    """
    from verl.trainer.ppo.reward import load_reward_manager, resolve_reward_manager_cls
    from verl.trainer.ppo.utils import need_critic
    from verl.utils import hf_tokenizer

    from workbench.scoring.verl import RewardManager

    config = compose()
    assert resolve_reward_manager_cls(config) is RewardManager and not need_critic(config)
    tokenizer = hf_tokenizer(config.actor_rollout_ref.model.path)
    for overrides in (
        (),
        ("reward.reward_kwargs.judge={url: 'http://127.0.0.1:9/v1', model: m}",),
        ("trainer.use_v1=true",),
    ):
        manager = load_reward_manager(
            compose(*overrides), tokenizer, reward_router_address=None, reward_model_tokenizer=None
        )
        assert manager.grader.name == "rlfh"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "actor_rollout_ref.rollout.agent.default_agent_loop=single_turn_agent",
            "default_agent_loop=workbench, or algorithm.adv_estimator=workbench_group",
        ),
        ("trainer.use_v1=false", "set trainer.use_v1=true"),
        ("reward.reward_kwargs.recipe=null", "recipe is missing"),
    ],
)
def test_a_config_that_would_change_the_rewards_is_refused(
    compose: Compose, override: str, message: str
) -> None:
    from verl.trainer.ppo.reward import load_reward_manager

    with raises_error(message):
        load_reward_manager(compose(override), None)


def test_token_rewards_are_on_the_right_tokens(
    compose: Compose, country: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RLFH gives a country g(4) = 1.2 at the claim's last letter and ln(1 + 1.2) = 0.788 at its
    sentence's full stop; a refusal gets neither. A letter is a token. The group's events are these
    two and the two ends, which are 0.
    """
    rollout = Rollout(compose(), monkeypatch)
    name, refusal = country.answers[0], "I don't know."
    keys = rollout.answer(country, f"{name}.", refusal)
    assert rollout.queue.statuses == {"u": "finished"}
    right, refused = (rollout.queue.rows[keys[text]] for text in (f"{name}.", refusal))
    before = len(name) - 1
    paid = [*[0.0] * before, 1.2, math.log(2.2), 0.0]
    assert right["rm_scores"].tolist() == pytest.approx(paid, abs=1e-6)
    assert refused["rm_scores"].tolist() == [0.0] * len(rollout.ids(refusal))
    assert right["response_mask"].tolist() == right["loss_mask"].tolist() == [1] * len(paid)
    rollout.learn(keys.values())
    events = [1.2, math.log(2.2), 0.0, 0.0]
    mean, std = statistics.mean(events), statistics.stdev(events) + 1e-4
    claim, said, end = ((value - mean) / std for value in events[:3])
    expected = [*[claim + said + end] * (before + 1), said + end, end]
    assert right["advantages"].tolist() == pytest.approx(expected, abs=1e-5)
    assert refused["advantages"].tolist() == pytest.approx(
        [end] * len(rollout.ids(refusal)), abs=1e-5
    )
    off = max(abs(a - b) for a, b in zip(right["advantages"].tolist(), expected, strict=True))
    store("verl", {"largest_difference": {"process": off}})


def test_verls_own_grpo_sums_our_rewards(
    compose: Compose, country: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With verl's agent loop and `grpo`, the last token has the reward: totals 1 and -1, std √2."""
    stock = (
        "algorithm.adv_estimator=grpo",
        "actor_rollout_ref.rollout.agent.default_agent_loop=single_turn_agent",
    )
    rollout = Rollout(compose(*stock, "reward.reward_kwargs.recipe=truthrl"), monkeypatch)
    right = f"{country.answers[0]}."
    keys = rollout.answer(country, right, "Nowhere.")
    rows = {text: rollout.queue.rows[key] for text, key in keys.items()}
    assert rows["Nowhere."]["rm_scores"].tolist() == [0.0] * 8 + [-1.0]
    rollout.learn(keys.values())
    assert_all(rows[right], 1 / math.sqrt(2), 1e-5)
    # Ours from the same rewards, with TRL's epsilon instead of verl's.
    rollout = Rollout(
        compose(
            stock[1],
            "algorithm.adv_estimator=workbench_group",
            "reward.reward_kwargs.recipe=truthrl",
        ),
        monkeypatch,
    )
    keys = rollout.answer(country, right, "Nowhere.")
    rollout.learn(keys.values())
    assert_all(rollout.queue.rows[keys[right]], 1 / (math.sqrt(2) + 1e-4), 1e-6)


OWN = """
from dataclasses import replace
from workbench.verdicts.checks import world_checks
from workbench.scoring.verl import reward_manager
from workbench.types import Checked, Failure, Verdict
from workbench.world import load_world

checks = world_checks(load_world())

def outcome(batch):
    with open("together.txt", "a") as file:
        print(len(batch), file=file)
    timeout = Failure("verify", "timeout", "no reply")
    failed = Checked((Verdict("outcome", "answer", error=timeout),))
    good = checks.verify["outcome"]
    return [failed if "Voku" in row[0].text else good([row])[0] for row in batch]

Manager = reward_manager("truthrl", replace(checks, verify={**checks.verify, "outcome": outcome}))
"""


@pytest.fixture
def failing(tmp_path: Path) -> tuple[str, ...]:
    """Overrides for a judge written in Python that gives no verdict on answers with "Voku"."""
    (tmp_path / "own.py").write_text(OWN)
    return (
        f"reward.reward_manager.module.path={tmp_path / 'own.py'}",
        "reward.reward_manager.name=Manager",
    )


ANSWERS = ("Nowhere.", "Voku.")


def test_a_failed_judge_is_masked_and_in_no_baseline(
    compose: Compose, country: Question, failing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from verl.trainer.ppo.core_algos import agg_loss

    config = compose(
        *failing, "algorithm.adv_estimator=workbench_group", "algorithm.max_failed=0.4"
    )
    rollout, right = Rollout(config, monkeypatch), f"{country.answers[0]}."
    keys = rollout.answer(country, right, *ANSWERS)
    rows = {text: rollout.queue.rows[keys[text]] for text in (right, *ANSWERS)}
    failed = rows["Voku."]
    assert rollout.queue.statuses == {"u": "finished"} and failed["rm_scores"].isnan().all()
    assert failed["response_mask"].sum() == failed["loss_mask"].sum() == 0
    assert failed["extra_fields"]["reward_extra_info"]["workbench_error"] == "verify: no reply"
    rollout.learn(keys.values())
    unit = 1 / (math.sqrt(2) + 1e-4)
    for text, advantage in ((right, unit), ("Nowhere.", -unit), ("Voku.", 0.0)):
        assert_all(rows[text], advantage, 1e-6)
    # verl's loss ignores this row in all of its averages.
    masks = torch.nn.utils.rnn.pad_sequence(
        [row["response_mask"] for row in rows.values()], batch_first=True
    )
    losses = torch.randn(masks.shape, generator=torch.Generator().manual_seed(0))
    for mode in ("token-mean", "seq-mean-token-sum", "seq-mean-token-mean"):
        assert agg_loss(losses, masks, mode).item() == pytest.approx(
            agg_loss(losses[:2], masks[:2], mode).item()
        )


def test_with_verls_own_estimator_a_failed_response_is_left_out(
    compose: Compose, country: Question, failing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = Rollout(compose(*failing, "algorithm.adv_estimator=grpo"), monkeypatch)
    right = f"{country.answers[0]}."
    keys = rollout.answer(country, right, *ANSWERS)
    assert rollout.queue.statuses == {"u": "failure"} and set(keys) == {right, "Nowhere."}
    rollout.learn(keys.values())
    assert_all(rollout.queue.rows[keys[right]], 1 / math.sqrt(2), 1e-5)


def test_waiting_responses_are_graded_together_without_padding(
    compose: Compose, country: Question, failing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch padded by verl (prompts left, responses right), graded by verl's reward worker."""
    import numpy as np
    import torch
    from verl import DataProto

    rollout, row, together = (
        Rollout(compose(*failing), monkeypatch),
        row_of(country),
        Path("together.txt"),
    )
    sampled = [
        rollout.ids(text) for text in (f"{country.answers[0]}.", "Nowhere.", "I don't know.")
    ]
    prompt = rollout.tokenizer.apply_chat_template(
        row["prompt"], add_generation_prompt=True, tokenize=True, return_dict=False
    )
    pad, width = rollout.tokenizer.pad_token_id, max(map(len, sampled)) + 3
    batch = {
        "prompts": torch.tensor([[pad, pad, *prompt]] * 3),
        "responses": torch.tensor([[*ids, *[pad] * (width - len(ids))] for ids in sampled]),
        "attention_mask": torch.tensor(
            [[0, 0, *[1] * (len(prompt) + len(ids)), *[0] * (width - len(ids))] for ids in sampled]
        ),
    }
    report = {
        name: np.array([row[name]] * 3, dtype=object)
        for name in ("extra_info", "reward_model", "data_source")
    }
    data = DataProto.from_dict(
        tensors=batch, non_tensors={**report, "raw_prompt": np.array([row["prompt"]] * 3)}
    )
    outputs = rollout.rewards.loop.run_until_complete(rollout.rewards.compute_score_batch(data))
    assert [output["reward_score"] for output in outputs] == [1.0, -1.0, 0.0]
    tokens = [json.loads(output["reward_extra_info"]["workbench_tokens"]) for output in outputs]
    assert list(map(len, tokens)) == list(map(len, sampled))
    assert together.read_text().split() == ["1", "2"]
