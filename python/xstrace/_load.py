"""Finds libxstrace-api and gives it to the extension module. `native` is None where that cannot be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

LIBRARY = "lib/libxstrace-api.so.0"
LEVELS = 4  # from <environment>/lib/python3.11/site-packages/xstrace up to the environment

native: Any = None
why = ""  # one line: why there is none


def _find() -> Path | None:
    """The library of this package's own installation: beside it there is lib/xstrace/ with the other parts."""
    for place in list(Path(__file__).resolve().parents)[1 : LEVELS + 1]:
        if (place / LIBRARY).is_file() and (place / "lib/xstrace").is_dir():
            return place / LIBRARY
    return None


def _load() -> tuple[Any, str]:
    if "XSTRACE_DISABLE" in os.environ:
        return None, "XSTRACE_DISABLE is set in the environment"
    try:
        from . import _native  # type: ignore[attr-defined]
    except ImportError as error:
        return None, f"the package was installed without its native parts ({error})"
    path = _find()
    if path is None:
        return None, f"no {LIBRARY} belongs to the package in {Path(__file__).parent}"
    try:
        _native.load(os.fspath(path))
    except OSError as error:
        return None, str(error)
    if "XSTRACE_RUN" in os.environ:  # the launcher's: ranges are recorded without a profile
        _native.initialize(True)
    return _native, ""


native, why = _load()
