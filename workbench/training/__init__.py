"""Trainers, one file per algorithm:

- `grpo_step` is one GRPO step on TRL's trainer, `grpo` its stage and `grpo_config` its settings.
  `unsloth_hooks`, `colocate` (vLLM) and `shared_prefix` are its optional parts, `sampling` its
  rollouts.
- `ppo` is PPO from sampling to update, on `actor` (policy, critic, optimizer).
- `offline` is SFT and DPO on TRL's trainers, `rows` their data, `pairs` the rules that make it from
  graded samples, `collect` how these are sampled.
- `reward_model` trains reward models of segments; `scorer` applies and stores them.
- Shared: `settings` (parts of configs), `stage`, `loading` (policies with an adapter), `recorder`
  (rollouts, metrics, checkpoints), `trl_common`.
"""
