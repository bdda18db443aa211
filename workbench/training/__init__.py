"""Trainers, one file for each algorithm:

- GRPO: `grpo` (stage), `grpo_config` (settings), `grpo_step` (one step on TRL's trainer),
  `sampling` (rollouts), and the optional `unsloth_hooks`, `colocate` (vLLM), `shared_prefix`.
- PPO: `ppo` (from sampling to update) and `actor` (policy, critic, optimizer).
- SFT and DPO: `offline` (on TRL's trainers), `rows` (training rows and their token ids), `pairs`
  (rules that select rows from graded responses), `collect` (sampling of these responses).
- Reward models of segments: `reward_model` (training), `scorer` (scoring, saving, loading).
- Shared: `settings` (parts of configs), `stage` (one training of a run), `loading` (policies with
  an adapter), `recorder` (rollouts, metrics, checkpoints), `trl_common` (for TRL's trainers).
"""
