"""Who asks and what is answered. Plain values; nothing is looked up here."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """A person at a door.

    workspace: absolute path. session_id: the session that is open, which may not have begun; None without one.
    agent_id: who would answer in a session to come. language: a tag of `general.language`, such as
    `zh-CN`. session_prefix: what the ids of this person's
    sessions begin with, at doors whose users see only their own; None in the browser. client_msg_id: of the message
    that held the command; sent again it has the same effect once, where once matters.
    """

    workspace: str
    access: str
    session_id: str | None = None
    agent_id: str | None = None
    language: str = "en-US"
    session_prefix: str | None = None
    door: str = "browser"
    client_msg_id: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """Markdown for the person who asked, and where the door turns to.

    switch_to: a session id; nobody may have spoken there yet. workspace: its folder, when that is another one now.
    agent_id: who answers there, when the session is a new one.
    """

    text: str
    switch_to: str | None = None
    workspace: str | None = None
    agent_id: str | None = None
