"""What the model reads in place of what a person typed: skill commands opened up, `@scope` instructions put in front.

Made when a message lands, from the files as they are then. The page keeps the words as they were typed.
"""

from dataclasses import dataclass, field, replace

from agents_app.config.scope_text import with_scopes
from agents_app.held_session import HeldSession
from agents_app.skill_commands import Refusal, expand
from halo_project.errors import HaloError
from sessions_app.models import QueuedMessage

# Messages that people, or schedules of theirs, wrote. What agents send one another is taken as it is.
_SPOKEN = (QueuedMessage.Kind.PERSON, QueuedMessage.Kind.CRON)


@dataclass(frozen=True, slots=True)
class Spoken:
    """By key of the queued row: the text for the model where it differs, and what the person is told beside it."""

    texts: dict[int, str] = field(default_factory=dict)
    notices: dict[int, tuple[str, ...]] = field(default_factory=dict)


AS_TYPED = Spoken()


def spoken_words(held: HeldSession, rows: list[QueuedMessage]) -> Spoken:
    """Reads files: for a thread. A file that cannot be used is told to the person; the message goes on as typed."""
    spoken = Spoken()
    for row in rows:
        if row.kind in _SPOKEN:
            preface, words = _parted(row)
            try:
                text, notices = _for_model(held, words)
            except HaloError as error:
                text, notices = words, (error.message,)
            if text != words:
                spoken.texts[row.pk] = preface + text
            if notices:
                spoken.notices[row.pk] = notices
    return spoken


def _parted(row: QueuedMessage) -> tuple[str, str]:
    """What a schedule puts in front, a paragraph of its own, and the words that somebody wrote."""
    if row.kind != QueuedMessage.Kind.CRON:
        return "", row.text
    preface, gap, words = row.text.partition("\n\n")
    return preface + gap, words


def _for_model(held: HeldSession, text: str) -> tuple[str, tuple[str, ...]]:
    scoped = with_scopes(text, held.workspace)
    given = held.in_force
    if given is None or not scoped.words.startswith("/"):
        return scoped.text, scoped.problems
    opened = expand(scoped.words, given.listed_skills, given.circumstances.access, given.skill_values)
    if isinstance(opened, Refusal):
        return scoped.text, (*scoped.problems, opened.message)
    if opened is None:
        return scoped.text, scoped.problems
    return replace(scoped, words=opened.text).text, scoped.problems
