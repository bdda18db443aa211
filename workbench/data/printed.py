"""Parse lists and objects that were saved as text, for example in a column of a CSV file."""

import ast
import json
import re
from typing import Any

_CONTAINER = re.compile(r"(?:[\w.]+\()?[\[({].*[\])}]|\w+\(\)", re.S)
# an unclosed string ends with the text, so that matching takes linear time
_STRING = r"""'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*\"?"""
# an item, and the spaces before the next one, where numpy prints no comma
_ITEM = re.compile(rf"({_STRING}|[\w.+-]+|[\])}}])(\s+(?=['\"\w.+(\[{{-]))?", re.S)
_CALL = re.compile(
    r"array|tensor|Index|(frozen)?set|tuple|list|str_?|u?int\d*|float\d*|bool_?|OrderedDict"
)


def container(value: Any) -> Any:
    """Return the list or object that a text represents: "['a', 'b']" becomes ["a", "b"].

    The text may be JSON, or a value printed by Python, numpy or pandas. Printed arrays, tuples of
    texts and sets of texts become lists. A numpy array (not a text) becomes a list, too.

    All other values are returned unchanged. This includes texts such as "(1, 2)" and "{1, 2}",
    which may be mathematics.
    """
    if hasattr(value, "tolist"):
        return value.tolist()
    if not isinstance(value, str) or not _CONTAINER.fullmatch(text := value.strip()):
        return value
    try:
        return json.loads(text, parse_constant=lambda _: None)  # NaN and Infinity become None
    except (ValueError, RecursionError):
        pass
    try:
        tree = ast.parse(
            _ITEM.sub(lambda item: f"{item[1]}," if item[2] else item[1], text), mode="eval"
        )
        read = ast.literal_eval(_WithoutCalls().visit(tree))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return value
    if isinstance(read, tuple | set | frozenset) and all(isinstance(item, str) for item in read):
        return list(read) if isinstance(read, tuple) else sorted(read)
    return read if isinstance(read, list | dict) else value


class _WithoutCalls(ast.NodeTransformer):
    """Syntax tree transformer: `array([…])` or `np.str_('…')` → its argument, nan → None."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return self.visit(node.args[0]) if node.args and _CALL.fullmatch(name) else node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(None) if node.id in ("nan", "null") else node
