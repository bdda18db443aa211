"""Load policies (the language models that are trained or evaluated) and sample from them.

`load` loads a policy by name and `weights` checks its weights. `generate` samples responses with an
engine: `hf` (transformers, with `decode`) or `vllm`. `serve` runs a server for a judge model.
"""
