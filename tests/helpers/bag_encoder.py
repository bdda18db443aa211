"""A fast local encoder for dense search that averages fixed random vectors of words."""

from pathlib import Path

import pytest


def make_encoder(folder: Path, width: int = 64) -> Path:
    """Save an encoder of the words w0 to w499, clown and film, with vectors of size `width`."""
    models = pytest.importorskip("sentence_transformers.sentence_transformer.modules")
    import numpy as np
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    names = ["[UNK]", *(f"w{i}" for i in range(500)), "clown", "film"]
    tokenizer = Tokenizer(WordLevel({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    vectors = np.random.default_rng(0).normal(size=(len(names), width)).astype("float32")
    vectors[0] = 0
    SentenceTransformer(
        modules=[models.StaticEmbedding(tokenizer, embedding_weights=vectors)]
    ).save(str(folder))
    return folder
