"""Leases, queue and rounds on the real database: who may hold a session, what a round is made of."""

from datetime import timedelta

import pytest
from django.db import transaction

from halo_project.clock import sleepless, utcnow
from halo_project.timing import Timing
from sessions_app import lease as leases
from sessions_app import queue, rounds
from sessions_app.lease import RoundFacts
from sessions_app.models import AgentSession, QueuedMessage, SessionRun, Workspace
from sessions_app.process_identity import ProcessIdentity, host_id, started_at, this_process
from sessions_app.rounds import Columns, Ending

pytestmark = pytest.mark.django_db(transaction=True)

TIMING = Timing()
TURN = SessionRun.Kind.TURN
DEAD = ProcessIdentity("dead", host_id(), 2**22 + 1, "0.00")
FOREIGN = ProcessIdentity("foreign", "another-host", 1, "0.00")


@pytest.fixture
def session():
    now = utcnow()
    workspace = Workspace.objects.create(path="/w", created_at=now)
    return AgentSession.objects.create(
        workspace=workspace, session_id="s1", agent_id="default", leaf_key="s1", created_at=now, updated_at=now
    )


def say(session, text="hi", **fields):
    return queue.enqueue(session, kind=fields.pop("kind", queue.Kind.PERSON), now=utcnow(), text=text, **fields)


def control(session, name, round_id):
    return queue.enqueue(session, kind=queue.Kind.CONTROL, now=utcnow(), control=name, control_round=round_id)


def begin(session, owner=None, now=None):
    return rounds.begin(session.pk, TURN, owner or this_process(), now or utcnow(), TIMING)


def finish(begun, **ending):
    return rounds.finish(begun.lease, Ending(Columns(), **ending), begun.lease.round_id, utcnow())


def texts(batch):
    return [row.text for row in batch.rows]


def test_a_held_session_is_not_given_twice(session):
    say(session)
    assert texts(begin(session).batch) == ["hi"]
    assert begin(session) is None


def test_nothing_queued_means_no_lease(session):
    assert begin(session) is None and not SessionRun.objects.exists()


def test_S7_a_dead_holder_is_replaced_at_once_with_a_higher_generation(session):
    say(session)
    first = begin(session, DEAD)
    second = begin(session)
    assert second.lease.taken_over and second.lease.takeovers == 1
    assert second.lease.generation == first.lease.generation + 1 and second.lease.run_id == first.lease.run_id
    with pytest.raises(leases.LeaseLost):
        leases.held_run(first.lease)
    assert not first.lease.may_write()


def test_a_foreign_host_is_dead_only_when_it_fell_silent(session):
    say(session)
    begin(session, FOREIGN)
    assert begin(session) is None
    assert begin(session, now=utcnow() + timedelta(seconds=46)).lease.taken_over


def test_a_short_lease_that_was_never_given_back_does_not_hold_a_session_for_ever(session):
    with transaction.atomic():
        leases.acquire(leases.lock_session(session.pk), "maintenance", this_process(), utcnow(), TIMING)
    assert leases.dead_runs(utcnow() + timedelta(seconds=599), TIMING) == []
    assert leases.dead_runs(utcnow() + timedelta(seconds=601), TIMING) == [session.pk]
    say(session)
    taken = begin(session, now=utcnow() + timedelta(seconds=601)).lease
    assert taken.taken_over and taken.kind == "turn"


def test_a_parked_run_counts_as_dead(session):
    say(session)
    begin(session)
    assert leases.park_all(this_process()) == 1
    assert leases.dead_runs(utcnow(), TIMING) == [session.pk]
    assert begin(session).lease.taken_over


def test_belief_fades_and_renewal_restores_it(session):
    say(session)
    lease = begin(session).lease
    lease.renewed_at = sleepless() - 31
    with pytest.raises(leases.LeaseLost):
        lease.check()
    assert leases.renew_all([lease], this_process(), utcnow()) == []
    lease.check()


def test_a_renewal_finds_what_was_lost_and_what_is_being_deleted(session):
    say(session)
    lease = begin(session).lease
    AgentSession.objects.update(deleting=True)
    leases.renew_all([lease], this_process(), utcnow())
    assert lease.deleting and not lease.may_write()
    SessionRun.objects.all().delete()
    assert leases.renew_all([lease], this_process(), utcnow()) == [lease] and lease.lost


def test_a_message_that_comes_before_the_release_becomes_the_next_round(session):
    say(session, "one")
    begun = begin(session)
    queue.settle(begun.batch.rows, queue.State.LANDED)
    say(session, "two")
    following = finish(begun)
    assert texts(following) == ["two"] and begun.lease.round == 2
    queue.settle(following.rows, queue.State.LANDED)
    assert finish(begun) is None and not SessionRun.objects.exists()


def test_landing_clears_the_words_and_keeps_the_row(session):
    row = say(session, "secret words", client_msg_id="c1")
    queue.settle([row], queue.State.LANDED)
    row.refresh_from_db()
    assert (row.text, row.images, row.state) == ("", [], "landed")
    assert queue.find_by_client_id(session.workspace_id, "c1").pk == row.pk


def test_stamps_rise_also_when_the_clock_goes_back(session):
    later = queue.enqueue(session, kind=queue.Kind.PERSON, now=utcnow() + timedelta(hours=1), text="a")
    earlier = queue.enqueue(session, kind=queue.Kind.PERSON, now=utcnow(), text="b")
    assert earlier.stamp_ms == later.stamp_ms + 1


def test_a_stop_takes_what_stands_before_it_and_leaves_what_comes_after(session):
    say(session, "running")
    begun = begin(session)
    queue.settle(begun.batch.rows, queue.State.LANDED)
    say(session, "before")
    control(session, "stop", begun.lease.round_id)
    say(session, "after")
    batch = finish(begun)
    assert texts(batch) == ["before"] and batch.stop is not None
    queue.settle([*batch.rows, batch.stop], queue.State.FOLDED)
    assert texts(finish(begun)) == ["after"]


def test_a_control_of_an_older_round_is_dropped(session):
    control(session, "stop", "run:1")
    say(session, "hi")
    batch = queue.next_batch(session.pk, "run:7")
    assert texts(batch) == ["hi"] and batch.stop is None
    assert QueuedMessage.objects.get(control="stop").state == queue.State.DROPPED


def test_an_interrupt_folds_everything_into_one_round(session):
    say(session, "before")
    control(session, "interrupt", "r:1")
    say(session, "after")
    batch = queue.next_batch(session.pk, "r:1")
    assert texts(batch) == ["before", "after"] and len(batch.interrupts) == 1


def test_a_cron_row_is_a_round_of_its_own(session):
    for text, kind in (("a", "person"), ("fire", "cron"), ("b", "person")):
        say(session, text, kind=kind)
    first = queue.next_batch(session.pk, "")
    assert texts(first) == ["a"]
    queue.settle(first.rows, queue.State.LANDED)
    second = queue.next_batch(session.pk, "")
    assert texts(second) == ["fire"]


def test_failed_messages_keep_their_words_and_go_first_next_time(session):
    say(session, "first")
    assert [row.text for row in queue.fail_queued(session.pk, "no key")] == ["first"]
    assert not queue.has_queued(session.pk) and queue.pending(session.pk)[0].error == "no key"
    queue.requeue_failed(session)
    say(session, "second")
    assert texts(queue.next_batch(session.pk, "")) == ["first", "second"]


def test_a_lost_wake_up_is_found_after_the_grace(session):
    say(session)
    assert queue.forgotten(utcnow(), 5) == []
    assert queue.forgotten(utcnow() + timedelta(seconds=6), 5) == [session.pk]


def test_what_a_round_answers_is_noted_as_it_lands_and_forgotten_with_its_end(session):
    rows = [say(session)]
    begun = begin(session)
    facts = RoundFacts(rows[0].row_id, frozenset({"a", "b"}), waited=True)
    rounds.landed(begun.lease, rows, [], queue.State.LANDED, Columns(title="t", exchanges=1), facts)
    rounds.landed(begun.lease, [], [], queue.State.LANDED, Columns(title="u"), None)
    session.refresh_from_db()
    assert RoundFacts.from_json(SessionRun.objects.get().facts) == facts
    assert (session.title, session.exchange_count) == ("t", 1)
    say(session)
    rounds.finish(begun.lease, Ending(Columns()), begun.lease.round_id, utcnow())
    assert SessionRun.objects.get().facts is None


def test_what_a_round_owes_fails_together_with_its_end(session):
    say(session)
    begun = begin(session)
    queue.settle(begun.batch.rows, queue.State.LANDED)

    def owed(following):
        AgentSession.objects.update(title="written by the outcome")
        raise RuntimeError("the outcome cannot be written")

    with pytest.raises(RuntimeError):
        finish(begun, owed=owed)
    session.refresh_from_db()
    assert session.title is None and SessionRun.objects.exists()


def test_this_process_is_alive_and_a_reused_pid_is_not_it():
    me = this_process()
    assert started_at(me.pid) == me.pid_started
    assert started_at(2**22 + 1) is None


def test_a_stop_is_not_forgotten_by_a_crash_before_it_lands(session):
    say(session, "running")
    begun = begin(session, DEAD)
    queue.settle(begun.batch.rows, queue.State.LANDED)
    say(session, "to be folded")
    control(session, "stop", begun.lease.round_id)
    assert finish(begun).stop is not None
    again = begin(session)
    batch = finish(again, was_run=False)
    assert batch.stop is not None and texts(batch) == ["to be folded"]


def test_a_lease_whose_release_failed_is_given_up_by_its_own_process(session):
    say(session)
    begin(session)
    ((pk, generation),) = leases.rows_of(this_process())
    leases.park_rows([(pk, generation + 1)])
    assert begin(session) is None, "another generation is not touched"
    leases.park_rows([(pk, generation)])
    assert begin(session).lease.taken_over


def test_takeovers_count_until_a_round_really_ends(session):
    say(session)
    begin(session, DEAD)
    second = begin(session)
    say(session, "next")
    finish(second, was_run=False)
    assert SessionRun.objects.get().takeovers == 1
    finish(second)
    assert SessionRun.objects.get().takeovers == 0


def test_a_release_without_a_round_still_keeps_the_event_number(session):
    say(session)
    begun = begin(session)
    assert [row.text for row in rounds.fail(begun.lease, "no key", Ending(Columns(fixed={"event_seq": 41})))] == ["hi"]
    session.refresh_from_db()
    assert session.event_seq == 41 and not SessionRun.objects.exists()
