"""`python -m benchmarks.chaos [--seconds 180] [--people 20] [--every 9] [--seed x]`; exit code 1: a promise broke."""

import argparse
import sys
import time

from benchmarks.chaos.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=180, help="how long people talk and things break")
    parser.add_argument("--people", type=int, default=20, help="sessions that are talked to")
    parser.add_argument("--every", type=float, default=9, help="seconds between two faults, on average")
    parser.add_argument("--seed", default="", help="repeat the choices of an earlier run")
    options = parser.parse_args()
    began = time.monotonic()
    verdict = run(options.seconds, people=options.people, fault_every_s=options.every, seed=options.seed)
    for name, value in verdict.figures.items():
        print(f"{name:32} {value}")
    print(f"{'whole run s':32} {time.monotonic() - began:.0f}")
    for sentence in verdict.broken:
        print(f"BROKEN: {sentence}")
    print("every promise held" if not verdict.broken else f"{len(verdict.broken)} promises broke")
    return 1 if verdict.broken else 0


if __name__ == "__main__":
    sys.exit(main())
