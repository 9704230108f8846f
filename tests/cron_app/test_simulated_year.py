"""A thousand jobs for a year, cut short: the first fires of each, and all around each move of the clocks.

`python -m benchmarks.cron_year` walks the whole of it.
"""

import pytest

from tests.cron_app.simulated_year import ZONES, Tally, check, random_jobs

JOBS = 1000
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
def test_a_thousand_jobs_for_a_year(part):
    tally = Tally()
    for number, job in enumerate(random_jobs(JOBS, seed=7)):
        if number % PARTS == part:
            check(job, tally, limit=40)
    assert tally.jobs == JOBS // PARTS
    assert tally.fires > 25 * tally.jobs
    assert tally.moved_days > tally.jobs
    assert tally.differing > 0  # moved clocks were among what was compared
    assert 0 < tally.without_croniter < tally.jobs / 3


def test_the_jobs_are_of_every_kind():
    jobs = list(random_jobs(JOBS, seed=7))
    assert {job.zone for job in jobs} == set(ZONES)
    windows = {(job.active_from is not None, job.active_until is not None) for job in jobs}
    assert len(windows) == 4
    text = "\n".join(job.expression for job in jobs)
    for form in (" 29 2 *", "L", "LW", "#", "MON-FRI", "5-7", "/", ",", "JAN-MAR", "* * "):
        assert form in text
    both = [job for job in jobs if "*" not in job.expression.split(" ")[2] + job.expression.split(" ")[4]]
    assert len(both) > 100
