"""Regular expressions that are compiled at their first use."""

import pickle
import re

import pytest

from workbench.util.patterns import regex


def test_a_pattern_is_compiled_when_it_is_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    real = re.compile

    def noted(source: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append(source)
        return real(source, flags)

    monkeypatch.setattr(re, "compile", noted)
    word = regex("B+", re.I)
    assert compiled == []
    assert word.sub("-", "abBa") == word.sub("-", "aba") == "a-a"
    assert compiled == ["B+"]
    assert word.pattern == "B+" and pickle.loads(pickle.dumps(word)).findall("abB") == ["bB"]
    with pytest.raises(re.error):
        regex("(").search("")
    with pytest.raises(TypeError):  # as documented
        re.sub(word, "-", "abBa")
