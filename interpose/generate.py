#!/usr/bin/env python3
"""Writes the wrappers of one API from the API's own header and a small table (<api>.toml).

usage: generate.py TABLE.toml OUT_DIR COMPILER [ARG...]

The installed header is preprocessed and its prototypes are read (prototypes.py), so the wrappers fit the API that is there. Each
API has its own way in and so a module of its name, or one that the table names (way). The module writes <api>_wrap.c (for the
collector), <api>_functions.h (function numbers), <api>_names.c (number to name, for the drain process) and what else its way in needs.
"""
import importlib
import sys
import tomllib
from pathlib import Path


def main():
    path, out, compiler = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    table = tomllib.loads(path.read_text())
    importlib.import_module(table.get('way', path.stem)).write(table, path.stem, out, compiler)


if __name__ == '__main__':
    main()
