"""Numbers that decide results have one name each, and a name has one value."""

import ast
from collections import defaultdict

import pytest

from tests.test_map import FILES, module_of

ARITHMETIC = (
    ast.Expression,
    ast.Constant,
    ast.UnaryOp,
    ast.BinOp,
    ast.Tuple,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
)


def number(node):
    """Value of an expression of plain numbers, such as 1 << 18 or (60, 300); None of any other."""
    if not all(isinstance(part, ARITHMETIC) for part in ast.walk(node)):
        return None
    leaves = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    if not leaves or not all(type(leaf) in (int, float) for leaf in leaves):
        return None
    return eval(compile(ast.Expression(node), "<constant>", "eval"), {"__builtins__": {}})


def constants(source):
    """Names and values of the numbers that a module defines at its top level."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        else:
            continue
        while pairs:
            target, value = pairs.pop()
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs += zip(target.elts, value.elts, strict=True)
            elif isinstance(target, ast.Name) and number(value) is not None:
                yield target.id, number(value)


def with_several_values(sources):
    """Names that stand for different numbers in different modules, with the values of each."""
    values = defaultdict(dict)
    for module, source in sources.items():
        for name, value in constants(source):
            values[name][module] = value
    return {n: where for n, where in values.items() if len(set(where.values())) > 1}


def test_no_name_has_two_values():
    sources = {module_of(path): path.read_text() for path in FILES}
    assert not with_several_values(sources)


@pytest.mark.parametrize(
    ("one", "other", "clash"),
    [
        ("N = 1", "N = 2", True),
        ("N = 1", "N: int = 2", True),
        ("N = 1 << 18", "N = 262144", False),
        ("N = 1 << 18", "N = 5", True),
        ("N = 60, 300", "N = 60", True),
        ("M, N = 1, 2", "N = 3", True),
        ("N = M = 1", "M = 2", True),
        ("N = -1e-3", "N = 1e-3", True),
        ("N = 'a'", "N = 2", False),
        ("N = len(X)", "N = 2", False),
        ("def f():\n    N = 1", "N = 2", False),
        ("N = True", "N = 2", False),
        ("N = 5", "N = 5.0", False),
    ],
)
def test_a_name_with_two_values_is_seen(one, other, clash):
    assert bool(with_several_values({"a": one, "b": other})) == clash
