"""A short chaos run: talk to a real server while its workers are killed. `make chaos` is the long one."""

from benchmarks.chaos.run import run


def test_a_short_chaos_run_breaks_no_promise():
    verdict = run(25, people=6, fault_every_s=5, scale="0.5")
    assert verdict.broken == []
    assert verdict.figures["messages"] > 6
