"""Commands about plans."""

from coord.transports.cli.spec import Argument, CommandSpec, Flag

PLAN = Argument("file", "a plan in YAML, or in JSON where the name ends in .json")

COMMANDS = (
    CommandSpec(
        "plan load",
        "add the tasks of a plan; again is harmless, and a changed plan says what it changes",
        handler="coord.transports.cli.handlers.plans:load",
        examples=("coord plan load plan.yaml", "coord plan load plan.yaml --dry-run"),
        arguments=(PLAN,),
        flags=(Flag("dry-run", "only say what would change"),),
        details="Files are named from the top of the repository. Work that runs goes on; nothing is removed.",
    ),
    CommandSpec(
        "plan check",
        "look a plan over without loading it: exit 2 if it cannot be carried out",
        handler="coord.transports.cli.handlers.plans:check",
        examples=("coord plan check plan.yaml",),
        arguments=(PLAN,),
    ),
    CommandSpec(
        "plan show",
        "show the tasks of each track and how far they are",
        handler="coord.transports.cli.handlers.plans:show",
        examples=("coord plan show", "coord plan show --svg > plan.svg"),
        flags=(
            Flag("table", "on a terminal, a table in place of the picture"),
            Flag("picture", "print the picture, also where nobody looks", excludes="table"),
            Flag("mermaid", "print a Mermaid flowchart", excludes="picture"),
            Flag("svg", "print an SVG drawing", excludes="mermaid"),
        ),
    ),
)
