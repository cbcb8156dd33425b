"""What is temporary goes with the command that made it, however that ends.

A signal may end the command between any two steps. So the name of a file or directory is noted before it is made, and who ends the
process (running.py) removes what is still noted.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile

_noted = {}  # path: pid of the process that makes it; a forked one has a copy


class Directory:
    """A new directory for this user alone, until cleanup() or the end of `with`, which gives its path.

    name: its path (str). Raises OSError.
    """

    def __init__(self, prefix):
        self.name = name_for(prefix, tempfile.gettempdir())
        os.mkdir(self.name, 0o700)

    def __enter__(self):
        return self.name

    def __exit__(self, *_):
        self.cleanup()

    def cleanup(self):
        """Removes it with all that is in it. More than once is no error."""
        shutil.rmtree(self.name, ignore_errors=True)
        forget(self.name)


def name_for(prefix, directory):
    """The path of a file or directory that is to be made there, noted until forget()."""
    path = os.path.join(directory, prefix + secrets.token_hex(8))
    _noted[path] = os.getpid()
    return path


def forget(path):
    """It is no longer there, or no longer temporary."""
    _noted.pop(path, None)


def remove_all():
    """For the end of the process."""
    for path, owner in list(_noted.items()):
        if owner != os.getpid():
            continue
        shutil.rmtree(path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.unlink(path)
