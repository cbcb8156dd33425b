"""What a slice of the host is, where its category does not tell calls from tasks: by its name, as in `tables/kinds.c`."""

from __future__ import annotations

import re

NAMELESS = "?"  # what has no name that is a text counts under this one

# the functions of APIs: what they begin with, followed by a capital letter or by anything
_API = re.compile(r"(?:cl|zes?|zet|zex|cu|cuda|hip|ur|nccl|nvml)[A-Z]|(?:P?MPI_|MPIX_|MPI::).")


_MOVES = re.compile(r"Read|Write|Copy|Fill|Map|Memcpy|Memset")


def moves_data(name: str) -> bool:
    """Does an API's function of this name, as the name of a device's work, mean a copy or a fill?"""
    return _MOVES.search(name) is not None


def is_call(name: str) -> bool:
    """Is it the name of an API's function? Else it is a task's."""
    return _API.match(name) is not None
