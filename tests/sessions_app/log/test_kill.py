"""A real process that writes both logs of a session is killed at random moments; `make bench` does it more often."""

from tests.support.kill_writer import run_kills


def test_S1_S26_a_killed_writer_leaves_every_acknowledged_save(tmp_path):
    figures = run_kills(tmp_path, 7, seed=20)
    assert figures["kills"] == 7
    assert figures["saves"] >= 7
    assert figures["segments"] > 0
