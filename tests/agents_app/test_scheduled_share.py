"""Half of the slots for scheduled prompts, and nobody who waits is forgotten."""

from agents_app.scheduled_share import ScheduledShare


def test_half_of_the_slots_and_at_least_one() -> None:
    share = ScheduledShare(5)
    assert [share.admit(pk) for pk in (1, 2, 3)] == [True, True, False]
    assert ScheduledShare(1).admit(1)


def test_those_that_wait_come_in_their_order() -> None:
    share = ScheduledShare(2)
    assert share.admit(1) and not share.admit(2) and not share.admit(3)
    assert share.wait(2) and share.wait(3)
    assert share.leave(1) == 2 and share.admit(2)
    assert share.leave(99) is None, "somebody else's turn ends, and there is no room yet"
    assert share.leave(2) == 3


def test_room_that_was_made_before_one_began_to_wait_is_seen() -> None:
    """It was refused, and the last one that ran left before it could say that it waits."""
    share = ScheduledShare(2)
    assert share.admit(1) and not share.admit(2)
    assert share.leave(1) is None
    assert not share.wait(2) and share.admit(2)


def test_one_that_another_process_has_served_lets_the_next_one_in() -> None:
    share = ScheduledShare(2)
    assert share.admit(1) and not share.admit(2) and not share.admit(3)
    assert share.wait(2) and share.wait(3)
    assert share.leave(1) == 2  # it finds nothing to do, is never admitted, and its task ends
    assert share.leave(2) == 3
