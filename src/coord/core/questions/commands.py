"""Commands about questions, and their replies: the API."""

from coord.core.commands import Reply, SessionCommand
from coord.core.questions.schema import QuestionKind, QuestionState


class QuestionInfo(Reply, frozen=True):
    """A question as others see it.

    `heard_until_ms` is set for a permission: a later answer reaches nobody (0: no hook waits for it).
    """

    id: str
    session_id: str
    agent: str
    project: str
    kind: QuestionKind
    text: str
    options: list[str]
    state: QuestionState
    asked_ms: int
    expires_ms: int
    heard_until_ms: int
    closed_ms: int
    answer: str
    reason: str
    answered_by: str
    end_reason: str


class AskQuestion(SessionCommand, frozen=True, kw_only=True):
    """Ask a person something, with options to choose from; the same open question is not asked twice.

    It expires after `ttl_ms`. For a permission, `call` is its tool call, and `wait_ms` how long a hook waits.
    """

    rule = "coord.core.questions.questions:ask_question"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = QuestionInfo
    text: str
    options: tuple[str, ...] = ()
    kind: QuestionKind = QuestionKind.ASK
    ttl_ms: int = 0
    wait_ms: int = 0
    call: str = ""


class AnswerReply(Reply, frozen=True):
    """The answered question; `delivered`: the session finds it in its inbox, or a hook waits for it."""

    question: QuestionInfo
    delivered: bool


class AnswerQuestion(SessionCommand, frozen=True, kw_only=True):
    """Answer a question as a person, or with a token that may; with `other`, by none of its options."""

    rule = "coord.core.questions.answer:answer_question"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = AnswerReply
    id: str
    answer: str
    reason: str = ""
    other: bool = False


class WithdrawQuestion(SessionCommand, frozen=True, kw_only=True):
    """Withdraw a question of the caller; a person may withdraw any."""

    rule = "coord.core.questions.questions:withdraw_question"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = QuestionInfo
    id: str
    reason: str = ""


class GetQuestion(SessionCommand, frozen=True, kw_only=True):
    """Return one question, open or closed."""

    rule = "coord.core.questions.questions:get_question"
    reply = QuestionInfo
    reads_only = True
    id: str


class QuestionList(Reply, frozen=True):
    """Questions, the open ones first and those oldest first; `more`: there are others."""

    now_ms: int
    questions: list[QuestionInfo]
    more: bool = False


class ListQuestions(SessionCommand, frozen=True, kw_only=True):
    """List the open questions, or with `closed` the closed ones behind them, newest first.

    An empty `project` means all.
    """

    rule = "coord.core.questions.questions:list_questions"
    reply = QuestionList
    reads_only = True
    closed: bool = False
    project: str = ""
    limit: int = 100
