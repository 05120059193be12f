"""Find the scorer that a user names as `module:function`, looking in the current folder first.

In: the name. Out: the scorer. Whatever its module does when it is imported ends in one line, not in a traceback.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from functools import reduce
from pathlib import Path
from typing import Any, Final

from builder.errors import BadInput
from eval.conformance.asking import Scorer, named_error

FORM: Final = "module:function"


class NoSuchScorerError(Exception):
    """The name is no `module:function`, or nothing that can be called goes by it: wrong usage."""


def find_scorer(name: str, *, folder: Path) -> Scorer:
    """Return the scorer of a name; modules are looked for in a folder first.

    Raises:
        NoSuchScorerError: the name has another form, or names no module or nothing to call.
        BadInput: the module is there and cannot be imported.
    """
    module_name, colon, path = name.partition(":")
    if not (colon and path and module_name and all(part.isidentifier() for part in module_name.split("."))):
        raise NoSuchScorerError(f"expected {FORM}, found {name!r}")
    module = _import(module_name, folder)
    try:
        scorer = reduce(getattr, path.split("."), module)
    except AttributeError:
        raise NoSuchScorerError(f"module {module_name} has no {path}") from None
    if not callable(scorer):
        raise NoSuchScorerError(f"{name} cannot be called: found a {type(scorer).__name__}")
    if inspect.iscoroutinefunction(scorer):
        raise NoSuchScorerError(f"{name} is a coroutine function: give one that returns the dict itself")
    return scorer  # type: ignore[no-any-return]


def _import(name: str, folder: Path) -> Any:
    if sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))  # and stays: a scorer may import more while it runs
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise NoSuchScorerError(f"no module {name}, neither in {folder} nor among what is installed") from None
        raise BadInput(f"{name}: the scorer's module needs {error.name}, which is not installed") from None
    except (Exception, SystemExit) as error:
        raise BadInput(f"{name}: the scorer's module could not be imported: {named_error(error)}") from None
