"""The law of the house, read from the source: bedside_bench <- builder <- eval, and only the command line talks."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LEFT_TO_RIGHT = ("bedside_bench", "builder", "eval", "tests")
FILES = sorted([ROOT / "bedside_bench.py", *(ROOT / "builder").rglob("*.py"), *(ROOT / "eval").rglob("*.py")])
VAGUE = {"utils", "util", "common", "base", "helpers", "helper", "types", "misc"}

# What belongs to cli.py: talking, the environment, the clock's dates, exit codes.
OF_THE_COMMAND_LINE = {
    *("print", "input", "exit", "quit", "breakpoint"),
    *("os.environ", "os.getenv", "os.environb", "sys.argv", "sys.exit", "os._exit", "sys.stdout", "sys.stderr"),
    *("time.time", "datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
    *("getproxies", "proxy_bypass"),
}
# An HTTP client honours the proxy variables of its environment, as curl and every SDK do; the command line could only
# hand them through. Certificates (SSL_CERT_FILE) are read by the ssl module itself.
ALLOWED = {("eval/calls/transport.py", "getproxies"), ("eval/calls/transport.py", "proxy_bypass")}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))


def _targets(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the modules that a statement may import: of `from a import b`, a and a.b."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]


def _at_import_time(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that run when the module is imported: not those in functions or under TYPE_CHECKING."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            waiting += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def test_the_walk_finds_the_house() -> None:
    """All three parts are read; a law over no files would always hold."""
    assert {"bedside_bench", "builder.cli", "eval.cli", "eval.calls.run"} <= set(map(_module, FILES))


def test_arrows_point_left() -> None:
    """A file imports its own part and what is to its left, in functions too."""
    for path in FILES:
        own = LEFT_TO_RIGHT.index(_module(path).partition(".")[0])
        found = {name.partition(".")[0] for node in _imports(_tree(path)) for name in _targets(node)}

        assert not found & set(LEFT_TO_RIGHT[own + 1 :]), path


def test_imports_are_absolute_and_name_what_they_use() -> None:
    """No relative import, no `import eval`, which hides the builtin, and no star: names come from modules."""
    for node in (node for path in FILES for node in _imports(_tree(path))):
        if isinstance(node, ast.Import):
            assert not {alias.name.partition(".")[0] for alias in node.names} & set(LEFT_TO_RIGHT), ast.unparse(node)
        else:
            assert (0, False) == (node.level, any(alias.name == "*" for alias in node.names)), ast.unparse(node)


def _said(tree: ast.AST) -> set[str]:
    """Return what a file calls and names: `print`, `os.environ`, `datetime.now`; also what it imports by name."""
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    attributes = [ast.unparse(node).split(".") for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    imported = {name for node in _imports(tree) for name in _targets(node)}
    return called | imported | {".".join(parts[-2:]) for parts in attributes}


def test_only_the_command_line_talks() -> None:
    """Nothing but cli.py prints, reads the environment, arguments or date, or chooses an exit code."""
    for path in (path for path in FILES if path.name != "cli.py"):
        name = path.relative_to(ROOT).as_posix()

        assert {(name, said) for said in _said(_tree(path)) & OF_THE_COMMAND_LINE} <= ALLOWED


def test_every_exception_is_still_needed() -> None:
    """An exception to the law that nobody uses any more is no exception."""
    assert {(name, said) for name, said in ALLOWED if said in _said(_tree(ROOT / name))} == ALLOWED


def test_modules_have_names_of_their_own() -> None:
    """No module is called like one of the standard library, or so that anything could be in it."""
    assert not {path.stem for path in FILES} & (sys.stdlib_module_names | VAGUE)


def test_no_module_imports_itself_in_a_circle() -> None:
    """At import time the modules form an order: any of them can be imported first."""
    modules = {_module(path) for path in FILES}
    graph = {
        _module(path): {
            name
            for node in _at_import_time(_tree(path))
            for name in _targets(node)
            if name in modules - {_module(path)}
        }
        for path in FILES
    }
    # A package's own (empty) __init__ runs before its modules; it imports none of them.
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as circle:
        pytest.fail(" -> ".join(circle.args[1]))

    assert modules <= set(order)


def test_the_contract_stands_alone() -> None:
    """`bedside_bench.py` needs the standard library only; what it can use besides is imported inside functions."""
    names = [name for node in _at_import_time(_tree(ROOT / "bedside_bench.py")) for name in _targets(node)]

    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


@pytest.mark.parametrize(
    ("source", "talks"),
    [
        ("print(1)", True),
        ("import os\nkey = os.environ['KEY']", True),
        ("from os import environ", True),
        ("import sys\nsys.exit(2)", True),
        ("import datetime\ndatetime.datetime.now()", True),
        ("from datetime import UTC, datetime\ndatetime.now(UTC)", True),
        ("import time\ntime.monotonic()", False),
        ("footprint(1)", False),
    ],
)
def test_the_law_sees_what_it_forbids(source: str, talks: bool) -> None:
    """The check itself finds each way of talking, and nothing that only looks like one."""
    assert talks == bool(_said(ast.parse(source)) & OF_THE_COMMAND_LINE)
