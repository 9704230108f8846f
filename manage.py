#!/usr/bin/env python
"""Django's command line for this project. `serve` and the other commands are those of `halo` too."""

from halo_project.console import manage

if __name__ == "__main__":
    manage()
