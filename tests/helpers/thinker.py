r"""A 2-layer Qwen2 whose chat template opens `<think>`, like R1's, trained on the format of an
answer.
"""

import json
from pathlib import Path

from tests.helpers.score_helpers import write
from tests.helpers.tiny_model import WORDS, byte_tokenizer, random_model
from workbench.data import load, split_of
from workbench.methods.bench import THINK_THEN_BOX
from workbench.methods.knowrl.config import PROMPTS
from workbench.training.rows import encode_example
from workbench.types import JsonObject, Question

# R1's template drops the thinking of earlier answers and opens the next one's.
TEMPLATE = (
    "{% for message in messages %}{% set content = message['content'] %}{% if message['role'] =="
    " 'assistant' %}{% set content = content.split('</think>')[-1] %}{% endif %}{{ '<|' +"
    " message['role'] + '|>' + content }}{% if message['role'] == 'assistant' %}{{ '<|end|>' }}{%"
    " endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|><think>\n' }}{% endif %}"
)
TAGS = ["<think>", "</think>", "<answer>", "</answer>"]  # single tokens, as in R1
MORE = [" It", " lies", " there", " city"]
PEOPLE = "Ada Bo Cy Di Ed Flo Gus Hal Ina Jo".split()
CITIES = ("Oslo", "Rome", "Lima")
STEPS = 75


def make_thinker(folder: Path, seed: int = 0) -> Path:
    """Save a random model trained on a few answers of the form
    `thought</think><answer>City</answer>`.
    """
    import torch

    tokenizer = byte_tokenizer(WORDS + MORE)
    tokenizer.add_tokens(TAGS)
    tokenizer.chat_template = TEMPLATE
    rows = [encode_example(tokenizer, question, text) for question, text in _examples()]
    model = random_model(
        tokenizer, "qwen2", seed, num_key_value_heads=2, max_position_embeddings=4096
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(STEPS):
        prompt, said = rows[step % len(rows)]
        labels = torch.tensor([[-100] * len(prompt) + said])
        model(input_ids=torch.tensor([prompt + said]), labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _examples() -> list[tuple[Question, str]]:
    """Answers in R1's format, to questions with and without a system prompt."""
    return [
        (
            Question(name, f" Where is {name}", system=system),
            f" It lies there.</think><answer> It is in {CITIES[number % 3]}.</answer>",
        )
        for number, name in enumerate(PEOPLE[:5])
        for system in ("", str(PROMPTS.system), THINK_THEN_BOX)
    ]


def hotpotqa(path: Path, each: int = 6) -> Path:
    """A file in the authors' format, with `each` questions per split and two paragraphs per
    question.
    """
    rows: dict[str, list[JsonObject]] = {"rl": [], "validation": [], "test": []}
    for number in range(500):
        identity = f"q{number}"
        if len(kept := rows[split_of(identity)]) < each:
            name, city = PEOPLE[number % 10], CITIES[number % 3]
            context = [
                [name, [f"{name} lives in {city}.", f" {city} is a city."]],
                [city, [f"{city} lies there."]],
            ]
            kept.append(
                {
                    "_id": identity,
                    "question": f" Where is {name}",
                    "answer": city,
                    "type": "bridge",
                    "level": "easy",
                    "supporting_facts": [[name, 0], [city, 0]],
                    "context": context,
                }
            )
    path.write_text(json.dumps([row for kept in rows.values() for row in kept]))
    return path


def webglm_qa(path: Path, each: int = 6) -> Path:
    """A JSON Lines file with WebGLM-QA's columns and `each` questions per split: three references,
    an answer that cites them, and no ids, which are derived from the questions.
    """
    rows = [
        {
            "question": f"Where is {name} of {city}, number {number}",
            "answer": f"{name} lives in {city}[1]. It lies there[2].",
            "references": [
                f"{name} lives in {city}.",
                f"{city} lies there.",
                f"{PEOPLE[number % 7]} works in Lima.",
            ],
        }
        for number in range(20)
        for name in PEOPLE[:5]
        for city in CITIES
    ]
    kept: dict[str, list[str]] = {"rl": [], "validation": [], "test": []}
    write(path, rows)
    for row, question in zip(rows, load(path), strict=True):
        kept[question.meta["split"]].append(json.dumps(row) + "\n")
    path.write_text("".join(line for lines in kept.values() for line in lines[:each]))
    return path
