#!/usr/bin/env python3
"""Prints for meson how each API is built: a line "API KEY VALUE" for each value in [build] of each <api>.toml."""
import tomllib
from pathlib import Path

for path in sorted(Path(__file__).parent.glob('*.toml')):
    for key, values in tomllib.loads(path.read_text()).get('build', {}).items():
        for value in [values] if isinstance(values, str) else values:
            print(path.stem, key, value)
