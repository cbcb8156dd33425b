"""The list of faults that tests must notice (tests/mutants.toml) fits the sources; tests/mutate itself, which takes long, is run by hand or by CI."""

import subprocess

import pytest
from conftest import ROOT


def mutate(*args):
    return subprocess.run([ROOT / "tests/mutate", *args], capture_output=True, text=True, timeout=300)


def test_every_fault_of_the_list_applies():
    result = mutate("--check")
    assert result.returncode == 0 and result.stdout.endswith(" 0 failed\n"), result.stdout


@pytest.mark.skipif(not (ROOT / "build/compile_commands.json").exists(), reason="built elsewhere")
def test_every_fault_of_the_list_compiles():
    """Else it would be noticed by nobody but the compiler, and its test might have fallen asleep."""
    result = mutate("--compile")
    assert result.returncode == 0 and result.stdout.endswith(" 0 failed\n"), result.stdout


def test_the_tree_is_never_the_copy():
    result = mutate("--copy", ROOT / "build/mutants", "kernel_filter")
    assert result.returncode == 1 and "in the tree itself" in result.stderr
