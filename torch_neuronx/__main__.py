"""``python -m torch_neuronx env``: the environment variables with their values, from the one table in the core."""

from __future__ import annotations

import argparse
import textwrap


def print_environment(only_set: bool) -> None:
    from torch_neuronx import _C

    for row in _C.option_listing():
        if only_set and not row["set"]:
            continue
        value = row["value"] if row["set"] else row["default"]
        mark = "set" if row["set"] else "default"
        print(f"{row['name']} = {value or '(empty)'}  [{row['type']}, {mark}]")
        text = row["help"] if not row["reason"] else f"{row['help']} No effect here: {row['reason']}."
        print(textwrap.fill(text, width=100, initial_indent="    ", subsequent_indent="    "))
    for name, text in _C.option_notices():
        print(f"note: {name}: {text}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m torch_neuronx", description="Facts about the neuron backend.")
    commands = parser.add_subparsers(dest="command", required=True)
    environment = commands.add_parser("env", help="list the environment variables and their values")
    environment.add_argument("--set", action="store_true", help="only those that are set")
    arguments = parser.parse_args()
    print_environment(arguments.set)


if __name__ == "__main__":
    main()
