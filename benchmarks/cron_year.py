"""A thousand random jobs in twelve time zones, walked from fire to fire for a whole year (nine for rare ones).

`python -m benchmarks.cron_year` stops at the first fire that is missing, extra or off, beside croniter and a look at
every minute around each move of the clocks (`tests/cron_app/simulated_year.py`). `make test` walks a short form of it.
"""

import argparse
import time
from datetime import UTC, datetime

from cron_app.schedules import next_fire
from tests.cron_app.simulated_year import Tally, check, random_jobs

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TIMED = ["0 * * * *", "*/15 * * * *", "0 9 * * MON-FRI", "0 0 29 2 *", "0 * 29 2 *", "0 0 * 2 MON#5"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    began, tally = time.perf_counter(), Tally()
    for job in random_jobs(options.jobs, options.seed):
        check(job, tally, limit=None)
        if tally.jobs % 100 == 0:
            print(f"{tally.jobs} jobs, {tally.fires} fires, {time.perf_counter() - began:.0f} s", flush=True)
    print(f"{tally.jobs} jobs, {tally.fires} fires: none missing and none extra beside croniter")
    print(f"{tally.moved_days} moves of the clocks looked at minute by minute: none missing, none extra")
    print(f"{tally.differing} instants on such days are not croniter's, whose wall knows no moves")
    print(f"{tally.without_croniter} of the jobs have LW, which croniter does not know, and had the reference alone")
    for expression in TIMED:
        print(f"{expression:18} next fire in {_milliseconds(expression):.3f} ms")


def _milliseconds(expression: str, times: int = 300) -> float:
    began = time.perf_counter()
    for _ in range(times):
        next_fire(expression, "Europe/Paris", NOW)
    return (time.perf_counter() - began) / times * 1000


if __name__ == "__main__":
    main()
