"""Runs one foreign program and ends it when the supervisor is gone: `guard.py <link descriptor> <program> [argument…]`.

The supervisor holds the other end of the link; when it dies, however suddenly, reading gives end-of-file. Our own
processes watch the link themselves (`link.py`); a program that knows nothing of it gets this guard. Standard library
only, started without site-packages, so that it costs a few milliseconds and little memory.
"""

import os
import signal
import subprocess
import sys
import threading

GRACE_S = 5.0


def main() -> None:
    link, command = int(sys.argv[1]), sys.argv[2:]
    program = subprocess.Popen(command)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: program.terminate())
    threading.Thread(target=_end_with_supervisor, args=(link, program), daemon=True).start()
    code = program.wait()
    sys.exit(code if code >= 0 else 128 - code)


def _end_with_supervisor(link: int, program: "subprocess.Popen[bytes]") -> None:
    while os.read(link, 4096):
        pass
    program.terminate()
    try:
        program.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        program.kill()


if __name__ == "__main__":
    main()
