"""The arguments that the supervisor gives to its processes."""

import argparse


def process_arguments(description: str) -> argparse.Namespace:
    """`link` and `listen` are descriptors (None when started by hand); `name` is the process's name."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--link", type=int, help="descriptor of the line to the supervisor")
    parser.add_argument("--listen", type=int, help="descriptor of the listening socket")
    parser.add_argument("--name", default="by-hand", help="name of this process")
    return parser.parse_args()
