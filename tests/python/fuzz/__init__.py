"""Random programs whose results must not depend on the mode they run in, bit for bit.

    python -m fuzz --count 1000            (from tests/python)
    python -m fuzz --seed 17               one program, printed, and shrunk when it fails

A program is a list of Python statements over a few tensors. The generator (`generate`) runs every statement on the CPU while
it writes it, so that programs are valid. The runner (`execute`) runs them on the device in every mode and compares
bits. Statements of an `exact` program are those whose result IEEE arithmetic fixes: they must equal the CPU's bits too.
"""
