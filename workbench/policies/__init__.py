"""Policies, one file per task: `load` loads them by name, `weights` checks their weights.
`generate` samples responses with an engine: `hf` (transformers, with `decode`) or `vllm`. `serve`
runs vLLM's server for a judge model.
"""
