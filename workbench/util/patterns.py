"""Regular expressions that are compiled at their first use.

The rules for claims, answers and abstentions have 244 patterns. Compiling them takes a fifth of a
second, which every command would wait for, whether it uses the rules or not.
"""

import re
from typing import Any, cast


class _Lazy:
    def __init__(self, source: str, flags: int) -> None:
        self.pattern, self._flags = source, flags  # `pattern` as in re.Pattern

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # `copy` and `pickle` look for these
            raise AttributeError(name)
        value = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, value)  # later uses find it without this function
        return value


def regex(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return the compiled pattern, as `re.compile` does, but compile it when it is first used.

    The functions of `re` do not accept it: call its methods, such as `regex("a").sub("b", text)`.

    Raises:
        re.error: at the first use; `source` is not a regular expression.
    """
    return cast("re.Pattern[str]", _Lazy(source, flags))
