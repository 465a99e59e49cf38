"""Ask people questions, answer them, and list what needs a person: needs and alerts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from coord.core.errors import Invalid
from coord.core.ids import check_id, short_repr
from coord.sdk.client.connection import Connection
from coord.sdk.client.waiting import POLL_S, WAIT_S_MAX
from coord.sdk.validation import arguments

if TYPE_CHECKING:
    from coord.core.alerts.commands import AlertInfo, AlertList, CheckReply
    from coord.core.lifecycle.commands import NeedsReply
    from coord.core.questions.commands import AnswerReply, QuestionInfo, QuestionList


ALERTS_S = 60
"""How often alerts are checked without a hub."""


class QuestionCalls(Connection):
    """The methods of a client about questions and alerts."""

    _alerts_checked_s = 0.0

    def ask(
        self,
        text: str,
        *,
        options: Sequence[str] = (),
        kind: str = "ask",
        ttl_s: float | None = None,
        wait_s: float | None = 0,
    ) -> QuestionInfo:
        """Ask a person something; with `wait_s` wait for the answer (None: as long as it takes).

        A wait that ends without an answer leaves the question open; its answer comes as a message. An
        exception during the wait withdraws the question.
        """
        from coord.core.questions.commands import AskQuestion
        from coord.core.questions.schema import QuestionKind

        if kind not in list(QuestionKind):
            raise Invalid(f"{short_repr(kind)} is not a kind of question", hint=", ".join(QuestionKind))
        command = AskQuestion(
            caller=self.caller,
            text=arguments.body(text, broadcast=False),
            options=tuple(arguments.one_line("option", each) for each in options),
            kind=QuestionKind(kind),
            ttl_ms=0 if ttl_s is None else arguments.milliseconds("ttl", ttl_s),
        )
        patience_s = WAIT_S_MAX if wait_s is None else arguments.milliseconds("wait", wait_s, min_s=0) / 1000
        question: QuestionInfo = self.call(command)
        return self._wait_for_answer(question, time.monotonic() + patience_s) if patience_s else question

    def wait_for_answer(self, name: str, wait_s: float) -> QuestionInfo:
        """Return an earlier question of this session once it is answered; still open after `wait_s`."""
        question = self.question(name)
        patience_s = arguments.milliseconds("wait", wait_s, min_s=0) / 1000
        return self._wait_for_answer(question, time.monotonic() + patience_s)

    def _wait_for_answer(self, question: QuestionInfo, deadline: float) -> QuestionInfo:
        from coord.core.questions.schema import QuestionState

        store = self.log
        try:
            while question.state is QuestionState.OPEN:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    break
                if self.on_wait is not None:
                    self.on_wait(question)
                store.wait(store.seen.offset, min(left_s, POLL_S))
                question = self.question(question.id)
        except BaseException:
            self.withdraw_question(question.id, reason="nobody waits for it any more")
            raise
        if question.state is QuestionState.ANSWERED:
            self._ack_answer(question.id)
        return question

    def _ack_answer(self, name: str) -> None:
        """Acknowledge the message with an answer, because the caller of `ask` gets it."""
        from coord.core.messages.commands import AckMessages, PeekMessages

        found = self.call(PeekMessages(self.caller)).messages
        ids = tuple(each.id for each in found if each.blob.get("question") == name)
        if ids:
            self.call(AckMessages(self.caller, ids))

    def question(self, name: str) -> QuestionInfo:
        """Return a question by its id, open or closed."""
        from coord.core.questions.commands import GetQuestion

        return self.call(GetQuestion(caller=self.caller, id=check_id("question", name)))

    def questions(self, project: str = "", *, closed: bool = False, limit: int | None = None) -> QuestionList:
        """Return the open questions of a project or of all, oldest first; with `closed` also the others."""
        from coord.core.questions.commands import ListQuestions

        name = check_id("project", project) if project else ""
        most = arguments.limit(limit)
        return self.call(ListQuestions(caller=self.caller, closed=closed, project=name, limit=most))

    def answer(self, name: str, answer: str, *, reason: str = "", other: bool = False) -> AnswerReply:
        """Answer a question as a person; with `other`, by something that is none of its options."""
        from coord.core.questions.commands import AnswerQuestion

        command = AnswerQuestion(
            caller=self.caller,
            id=check_id("question", name),
            answer=arguments.one_line("answer", answer),
            reason=arguments.one_line("reason", reason),
            other=other,
        )
        return self.call(command)

    def withdraw_question(self, name: str, *, reason: str = "") -> QuestionInfo:
        """Withdraw a question of this session; a person may withdraw any."""
        from coord.core.questions.commands import WithdrawQuestion

        text = arguments.one_line("reason", reason)
        return self.call(WithdrawQuestion(caller=self.caller, id=check_id("question", name), reason=text))

    def needs_you(self, project: str = "", *, limit: int = 100) -> NeedsReply:
        """Return what needs a person, in a project or in all, the most urgent first."""
        from coord.core.lifecycle.commands import NeedsYou

        name = check_id("project", project) if project else ""
        return self.call(NeedsYou(project=name, limit=arguments.limit(limit)))

    def alerts(self, *, closed: bool = False, project: str = "") -> AlertList:
        """Return the open alerts, newest first; with `closed` those that were closed behind them.

        Without a hub, which does so itself, this checks them at most once a minute.
        """
        from coord.core.alerts.commands import ListAlerts

        if not self.reads_only:
            self.check_alerts(at_once=False)
        name = check_id("project", project) if project else ""
        return self.call(ListAlerts(caller=self.caller, closed=closed, project=name))

    def check_alerts(self, *, at_once: bool = True) -> CheckReply | None:
        """Raise and close alerts, or at most once a minute; None if a hub does this or it is too early."""
        now_s = time.monotonic()
        early = self._alerts_checked_s and now_s - self._alerts_checked_s < ALERTS_S
        if self.database.is_remote or (early and not at_once):
            return None
        from coord.core.alerts.commands import CheckAlerts, ListWatched
        from coord.host.runtime.process_activity import take_samples

        self._alerts_checked_s = now_s
        return self.call(CheckAlerts(take_samples(self.call(ListWatched()))))

    def close_alert(self, name: str, *, right: bool, note: str = "") -> AlertInfo:
        """Close an alert as a person, and say whether it was right; also corrects an earlier outcome."""
        from coord.core.alerts.commands import CloseAlert

        text = arguments.one_line("note", note)
        return self.call(CloseAlert(caller=self.caller, id=check_id("alert", name), right=right, note=text))
