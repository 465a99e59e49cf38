"""Commands about questions to people."""

from coord.transports.cli.spec import Argument, CommandSpec, Flag

QUESTION = Argument("id", "the id of a question", completes="questions")

COMMANDS = (
    CommandSpec(
        "ask",
        "ask a person something",
        handler="coord.transports.cli.handlers.questions:ask",
        examples=(
            "coord ask 'Which port shall the server use?'",
            "coord ask 'Delete the old tables?' --options yes,no --wait=5m",
        ),
        arguments=(Argument("text", "the question"),),
        flags=(
            Flag("options", "the answers to choose from", "A,B,...", "names", default=None),
            Flag(
                "wait",
                "wait up to DURATION for the answer, then exit 3",
                "DURATION",
                "duration or zero",
                default=0.0,
                implied="100s",
            ),
            Flag("kind", "what it is", "KIND", choices=("ask", "decision"), default="ask"),
            Flag("ttl", "withdraw it without an answer after DURATION", "DURATION", "duration", default=None),
        ),
        details=(
            "The answer comes as a message, and as the reply if the command still waits. If the wait is over "
            "(exit 3), the question stays open; Ctrl-C and SIGTERM withdraw it. Asked again while it is "
            "open, it stays the same question."
        ),
    ),
    CommandSpec(
        "decide",
        "answer a question",
        handler="coord.transports.cli.handlers.questions:answer",
        examples=("coord decide q3 yes --reason 'we have a backup'",),
        arguments=(QUESTION, Argument("answer", "one of its options, or any line without options")),
        flags=(
            Flag("reason", "why, in one line; the agent reads it", "TEXT"),
            Flag("other", "the answer is none of the options"),
        ),
        details=(
            "Only people answer: agents are refused, also for the questions of others. A question that was "
            "answered, withdrawn or has expired, or whose session has ended, takes no answer any more."
        ),
    ),
    CommandSpec(
        "decisions",
        "list the questions to people, pending ones first",
        handler="coord.transports.cli.handlers.questions:decisions",
        reads=True,
        examples=("coord decisions", "coord decisions --all"),
        flags=(Flag("all", "also those that were answered or withdrawn"),),
    ),
    CommandSpec(
        "withdraw",
        "withdraw a question",
        handler="coord.transports.cli.handlers.questions:withdraw",
        examples=("coord withdraw q3",),
        arguments=(QUESTION,),
        flags=(Flag("reason", "why, in one line", "TEXT"),),
    ),
    CommandSpec(
        "needs",
        "list what needs a person, the most urgent first",
        handler="coord.transports.cli.handlers.questions:needs",
        reads=True,
        examples=("coord needs",),
        details=(
            "Open questions, silent sessions that hold locks or tasks, tasks that failed, agents that "
            "get no work, and alerts. `coord top` shows the same."
        ),
    ),
    CommandSpec(
        "why",
        "say why a task, lock or agent waits, and what frees it",
        handler="coord.transports.cli.handlers.awareness.why:why",
        reads=True,
        examples=("coord why task A-002-login", "coord why lock src/app.py", "coord why agent otto"),
        arguments=(
            Argument("what", "what it is about", choices=("task", "lock", "agent")),
            Argument("name", "a task, a resource or a session (default: this one)", optional=True),
        ),
        details=(
            "Follows the chain to its end: dependencies, claims and their leases, locks, wait queues, "
            "questions, tracks, and why each agent does not take a task. Then it names the one command that "
            "frees it; fill in the words in capitals."
        ),
    ),
    CommandSpec(
        "alerts",
        "list the alerts, or close one as true or false",
        handler="coord.transports.cli.handlers.awareness.alerts:alerts",
        reads=True,
        examples=("coord alerts", "coord alerts --all", "coord alerts close a3 --false --note 'a build'"),
        arguments=(
            Argument("action", "what to do", optional=True, choices=("list", "close")),
            Argument("id", "the id of an alert", optional=True),
        ),
        flags=(
            Flag("all", "also those that were closed"),
            Flag("true", "the alert was right"),
            Flag("false", "the alert was wrong", excludes="true"),
            Flag("note", "why, in one line", "TEXT"),
        ),
        details=(
            "Most alerts close themselves, as true or false; a person may close one earlier, or correct its "
            "outcome. A rule that was wrong in more than 4 of its last 20 alerts is muted: it only informs. "
            "A hub checks every minute; without one, this command does."
        ),
    ),
)
