"""`import headcount` stays cheap, and its lazy names are complete."""

import subprocess
import sys

import headcount


def test_import_pulls_in_nothing_heavy():
    heavy = {"pandas", "polars", "matplotlib", "numba", "torch", "typer", "pyarrow", "sklearn"}
    code = f"import sys, headcount; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_using_a_quantifier_imports_numba_only_when_it_counts():
    code = "import sys; from headcount import SLD, UniformPrevalence; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_public_name_exists_and_is_documented():
    for name in headcount.__all__:
        assert getattr(headcount, name).__doc__, name
    assert set(headcount.__all__) <= set(dir(headcount))


def test_public_names_of_methods_and_protocols_are_at_the_top():
    from headcount import methods, protocols

    public = {*methods.__all__, *protocols.__all__} - {"ArtificialProtocol", "X"}
    assert public <= set(headcount.__all__)
