"""Commands about tokens."""

from coord.transports.cli.spec import Argument, CommandSpec, Flag

TOKEN = Argument("id", "the id of a token", completes="tokens")
EXPIRES = Flag("expires", "it ends after DURATION (default: never)", "DURATION", "duration", default=None)

COMMANDS = (
    CommandSpec(
        "token create",
        "create a token and show it once",
        handler="coord.transports.cli.handlers.tokens:token_create",
        examples=(
            "coord token create --role view --label 'screen in the hall' --expires 90d",
            "coord token create --role operate --project shop --expires 30d",
        ),
        flags=(
            Flag(
                "role",
                "what it allows: to report, to look, to work, or all",
                "ROLE",
                choices=("report", "view", "operate", "admin"),
            ),
            Flag("project", "only for this project (default: all)", "NAME", "name", completes="projects"),
            Flag("session", "only for this session (default: all)", "ID", "name", completes="peers"),
            EXPIRES,
            Flag("label", "what it is for, in one line", "TEXT"),
        ),
        details=(
            "It belongs to the tenant (--tenant, COORD_TENANT). coord keeps only a hash, so store the "
            "token at once. An agent creates tokens below admin for its own session only. --role, "
            "--project and --session describe the token; before the command they describe the caller."
        ),
    ),
    CommandSpec(
        "token list",
        "list the tokens of the tenant, without their secrets",
        handler="coord.transports.cli.handlers.tokens:token_list",
        reads=True,
        examples=("coord token list", "coord token list --tenant acme"),
    ),
    CommandSpec(
        "token revoke",
        "end a token now",
        handler="coord.transports.cli.handlers.tokens:token_revoke",
        examples=("coord token revoke t-1f3a9c02b7de",),
        arguments=(TOKEN,),
    ),
    CommandSpec(
        "token rotate",
        "replace a token by one with a new secret",
        handler="coord.transports.cli.handlers.tokens:token_rotate",
        examples=("coord token rotate t-1f3a9c02b7de --grace 1h",),
        arguments=(TOKEN,),
        flags=(
            Flag(
                "grace", "the old one counts for DURATION more", "DURATION", "duration or zero", default=None
            ),
            EXPIRES._replace(summary="the new one ends after DURATION (default: as before)"),
        ),
        details="The new token has a new id and the same role, limits and label. It is shown once.",
    ),
    CommandSpec(
        "token export",
        "print the tokens of http hooks for your shell",
        handler="coord.transports.cli.handlers.tokens:token_export",
        connects=False,
        examples=('eval "$(coord token export)"',),
        details="coord init --hub=http keeps a token for each repository in a file of mode 600. Claude Code "
        "takes it from the environment in which it starts.",
    ),
)
