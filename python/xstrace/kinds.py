"""What a slice of the host is, where its category does not tell calls from tasks: by its name, as in `tables/kinds.c`."""

from __future__ import annotations

import re

# the functions of APIs: what they begin with, followed by a capital letter or by anything
_API = re.compile(r"(?:cl|zes?|zet|zex|cu|cuda|hip|ur|nccl|nvml)[A-Z]|(?:P?MPI_|MPIX_|MPI::).")


def is_call(name: str) -> bool:
    """Is it the name of an API's function? Else it is a task's."""
    return _API.match(name) is not None
