"""Find the text of a prompt or completion, which may be a conversation.

A conversation is a list of messages, or a text that a chat template made of them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.data.printed import container

_TEXTS, _ROLE_KEYS = frozenset({"content", "value"}), frozenset({"role", "from"})
ROLES = {"human": "user", "gpt": "assistant", "model": "assistant", "bot": "assistant"}

# Chat templates, one per line. Two spaces separate three patterns: the start of a conversation (may
# be empty), the mark before a user's turn and the mark after it. Each pattern takes linear time,
# also as `_last_turn` uses it. The last five templates have no special tokens: TRL and verl remove
# these when they decode, and some templates write roles as words.
_TEMPLATES = [
    tuple(re.compile(mark.strip()) for mark in line.split("  ", 2))
    for line in r"""
  <\|im_start\|>user(?:\n|<\|im_sep\|>)  <\|im_end\|>
  <\|im_user\|>user<\|im_middle\|>  <\|im_end\|>
  <\|start_header_id\|>user<\|end_header_id\|>  <\|eot_id\|>
  <\|header_start\|>user<\|header_end\|>  <\|eot\|>
  <start_of_turn>user\n  <end_of_turn>
  <\|turn>user\n  <turn\|>
  <[|｜]User[|｜]>  <[|｜](?:Assistant|end▁of▁sentence)[|｜]>
  \[INST\]|<</SYS>>  \[/INST\]
  <\|start\|>user<\|message\|>  <\|end\|>
  <\|start_of_role\|>user<\|end_of_role\|>  <\|end_of_text\|>
  <\|USER_TOKEN\|>  <\|END_OF_TURN_TOKEN\|>
  <\|user\|>  <\|(?:end|assistant)\|>|</s>
  \#\#\#\ (?:Instruction|User|Human):  \#\#\#\ (?:Response|Assistant):
(?:system|user)\n  (?m:^)user\n  \nassistant\Z
user\n  (?m:^)user\n  \nmodel\Z
(?:system|user)\n\n  user\n\n  assistant\Z
  (?<![^\s>])(?:[Uu]ser|USER|Human):  \s(?:[Aa]ssistant|ASSISTANT):\Z
  (?m:^)(?:Q|Question):  \n(?:A|Answer):\Z
""".strip("\n").splitlines()
]


def text_of(value: Any, role: str) -> str | None:
    """Return the text of a prompt (role "user") or of a completion (role "assistant").

    * From a list of messages: the last non-empty message of this role.
    * From a prompt that a chat template wrote (only for role "user"): the last user turn.
    * From any other text: the unchanged text.

    Args:
        value: a text, or a list of messages `{"role": …, "content": …}`. The list may be encoded as
            text (JSON). The content of a message may be a list of parts.
        role: "user" or "assistant".

    Returns:
        The text; None if the value is neither a text nor a conversation with a message of this
        role.
    """
    messages = container(value)
    messages = [messages] if isinstance(messages, Mapping) else messages
    # an answer in JSON, such as '{"value": 5}', has no roles
    needed = (_TEXTS, _ROLE_KEYS) if isinstance(value, str) else (_TEXTS,)
    if isinstance(messages, list) and messages and all(_has(one, needed) for one in messages):
        texts = [_content(message) for message in messages if _role(message, role) == role]
        value = next(filter(None, reversed(texts)), texts[-1] if texts else None)
    if not isinstance(value, str):
        return None
    return _last_turn(value) if role == "user" else value


def _has(message: Any, needed: Sequence[frozenset[str]]) -> bool:
    """Return whether `message` is an object with at least one key of each set in `needed`."""
    return isinstance(message, Mapping) and all(keys & message.keys() for keys in needed)


def _role(message: Mapping[str, Any], default: str) -> str:
    # a table has None in its gaps
    role = str(message.get("role") or message.get("from") or default)
    return ROLES.get(role, role)


def _content(message: Mapping[str, Any]) -> str:
    """Return the text of a message. If its content is a list, the texts of its parts are joined."""
    content = message.get("value") if message.get("content") is None else message["content"]
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in parts)
    return "".join(text for text in texts if isinstance(text, str))


def _last_turn(prompt: str) -> str:
    """Return the last user turn of a prompt that a chat template wrote, else the whole prompt."""
    # a template may begin the assistant's turn with an open or an empty thinking block
    text = prompt.rstrip().removesuffix("</think>").rstrip().removesuffix("<think>").rstrip()
    for start, before, after in _TEMPLATES:
        turns = [match.end() for match in before.finditer(text)] if start.match(text) else []
        if turns and (end := after.search(text, turns[-1])):
            return text[turns[-1] : end.start()].strip() or prompt
    return prompt
