"""Ratio table of the neuron device against CPU eager: `make bench`.

python benchmarks/run.py --only gelu          cases whose name or group contains a word
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path

import torch

from cases import all_cases
from harness import pin_to_one_core, run_case, table


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name or group contains this")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mode", help="eager mode of the device: adaptive (default), immediate or blocking")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    pin_to_one_core()
    if arguments.mode:
        from torch_neuronx import _C

        _C.set_eager_mode(arguments.mode)
    cases = [case for case in all_cases() if arguments.only in case.name or arguments.only in case.group]
    rows = []
    failed = []
    for case in cases:
        try:
            rows.append(run_case(case, 3 if case.group == "training" else arguments.rounds))
        except Exception as error:  # a case that fails must not hide the others
            failed.append(f"{case.name}: {type(error).__name__}: {error}")
            print(failed[-1], file=sys.stderr)
            continue
        print(
            f"{case.name:42s} host {rows[-1].ratio('host'):6.2f}x   total {rows[-1].ratio('total'):6.2f}x", flush=True
        )
    text = table(rows)
    print(f"\n{text}\n\nratio: CPU eager's time over neuron's, above 1 neuron is faster")
    if arguments.markdown:
        heading = f"One core of {processor()}, torch {torch.__version__}, best of {arguments.rounds}, CPU time.\n\n"
        arguments.markdown.write_text(heading + text + "\n")
    if arguments.json:
        arguments.json.write_text(
            json.dumps(
                {
                    "processor": processor(),
                    "torch": torch.__version__,
                    "rows": [
                        {
                            "name": row.case.name,
                            "group": row.case.group,
                            "host_ratio": row.ratio("host"),
                            "total_ratio": row.ratio("total"),
                            "seconds": {device: vars(times) for device, times in row.times.items()},
                            "checksums": row.checksums,
                        }
                        for row in rows
                    ],
                    "failed": failed,
                },
                indent=1,
            )
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
