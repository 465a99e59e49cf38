"""Records and events of questions: the format on disk."""

from enum import StrEnum

from coord.core.events import Event
from coord.core.records import Stored


class QuestionKind(StrEnum):
    """What a question is about.

    `ask` and `decision` come from an agent. `permission` is a request of its tool to run something, and
    `attention` says that the tool has stopped and waits for its user.
    """

    ASK = "ask"
    DECISION = "decision"
    PERMISSION = "permission"
    ATTENTION = "attention"


class QuestionState(StrEnum):
    """How far a question is."""

    OPEN = "open"
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"


class QuestionAsked(Event, frozen=True, tag="question.asked"):
    """A session asked a person something."""

    id: str
    session: str
    agent: str
    kind: QuestionKind
    text: str
    options: tuple[str, ...] = ()
    expires_ms: int = 0
    project: str = ""


class QuestionAnswered(Event, frozen=True, tag="question.answered"):
    """A person (`by`) answered a question, in a terminal or with a token; the ledger: `decision_made`."""

    id: str
    session: str
    agent: str
    kind: QuestionKind
    answer: str
    by: str
    reason: str = ""
    terminal: str = ""
    project: str = ""


class QuestionWithdrawn(Event, frozen=True, tag="question.withdrawn"):
    """A question ended without an answer: it expired, was withdrawn, or its session ended or went on."""

    id: str
    session: str
    agent: str
    kind: QuestionKind
    end_reason: str
    by: str = ""
    project: str = ""


class Question(Stored, frozen=True, tag=1):
    """A question, open or closed.

    `call` is the tool call that a permission is for. `heard_until_ms`: until then a hook waits for the
    permission; later, only the terminal of the tool takes the answer. `token` is the token with which the
    session came. A closed question is kept for some time.
    """

    id: str = ""
    session: str = ""
    agent: str = ""
    project: str = ""
    kind: QuestionKind = QuestionKind.ASK
    text: str = ""
    options: tuple[str, ...] = ()
    call: str = ""
    token: str = ""
    asked_ms: int = 0
    expires_ms: int = 0
    heard_until_ms: int = 0
    state: QuestionState = QuestionState.OPEN
    closed_ms: int = 0
    answer: str = ""
    reason: str = ""
    answered_by: str = ""
    end_reason: str = ""
    withdrawn_by: str = ""
    """Empty if it ended by itself."""


class Questions(Stored, frozen=True, tag=1):
    """The number of the newest question, so that no id is used twice."""

    newest: int = 0
