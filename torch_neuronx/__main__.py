"""``python -m torch_neuronx``: ``env`` lists the environment variables, ``doctor`` says what is installed and what is
wrong, ``collect_env`` prints torch's report for bug reports with a section of ours."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import textwrap


def print_environment(only_set: bool) -> int:
    import torch  # noqa: F401  (its libraries come first)

    from torch_neuronx import _C

    for row in _C.option_listing():
        if only_set and not row["set"]:
            continue
        value = row["value"] if row["set"] else row["default"]
        mark = "set" if row["set"] else "default"
        print(f"{row['name']} = {value or '(empty)'}  [{row['type']}, {mark}]")
        text = row["help"] if not row["reason"] else f"{row['help']} No effect here: {row['reason']}."
        print(textwrap.fill(text, width=100, initial_indent="    ", subsequent_indent="    "))
    for _, text in _C.option_notices():
        print(f"note: {text}")
    return 0


def examine(as_json: bool, run_self_test: bool) -> int:
    from torch_neuronx.diagnostics import facts, problems, report

    gathered = facts.gather(run_self_test)
    found = problems.find(gathered)
    if as_json:
        print(json.dumps({**gathered, "problems": [dataclasses.asdict(problem) for problem in found]}, indent=2))
    else:
        print(report.render(gathered, found))
    return 1 if any(problem.fatal for problem in found) else 0


def collect_environment() -> int:
    from torch_neuronx.diagnostics import facts, report

    gathered = facts.gather(run_self_test=False)
    if not gathered["torch"]["error"]:
        from torch.utils import collect_env

        print(collect_env.get_pretty_env_info())
        print()
    print("torch_neuronx:")
    for name, value in report.rows(gathered):
        print(f"{name}: {value}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torch_neuronx", description="Facts about the neuron backend.")
    commands = parser.add_subparsers(dest="command", required=True)
    environment = commands.add_parser("env", help="list the environment variables and their values")
    environment.add_argument("--set", action="store_true", help="only those that are set")
    doctor = commands.add_parser("doctor", help="what is installed and what is wrong; exit code 1 when something is")
    doctor.add_argument("--json", action="store_true", help="all facts and problems as JSON")
    doctor.add_argument("--no-self-test", action="store_true", help="do not run the short self-test")
    commands.add_parser("collect_env", help="torch's report for bug reports, and ours")
    arguments = parser.parse_args()
    if arguments.command == "env":
        return print_environment(arguments.set)
    if arguments.command == "doctor":
        return examine(arguments.json, not arguments.no_self_test)
    return collect_environment()


if __name__ == "__main__":
    sys.exit(main())
