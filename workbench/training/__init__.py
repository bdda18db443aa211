"""Trainers, one file for each algorithm:

- GRPO: `grpo` (stage), `grpo_config` (settings), `grpo_step` (one step on TRL's trainer),
  `sampling` (rollouts), and the optional `unsloth_hooks`, `colocate` (vLLM), `shared_prefix`.
- PPO: `ppo` (from sampling to update) and `actor` (policy, critic, optimizer).
- SFT and DPO: `offline` (on TRL's trainers), `rows` (training rows and their token ids), `pairs`
  (rows from graded samples), `collect` (samples to choose rows from).
- Reward models of segments: `reward_model` (training), `scorer` (use and files).
- Shared: `settings` (parts of configs), `stage`, `loading` (policies with an adapter), `recorder`
  (rollouts, metrics, checkpoints), `trl_common`.
"""
