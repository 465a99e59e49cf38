"""Commands about plans."""

from coord.transports.cli.spec import Argument, CommandSpec, Flag

PLAN = Argument("file", "a plan in YAML, or JSON if the name ends in .json")

COMMANDS = (
    CommandSpec(
        "plan load",
        "add the tasks of a plan, or update them",
        handler="coord.transports.cli.handlers.plans:load",
        examples=("coord plan load plan.yaml", "coord plan load plan.yaml --dry-run"),
        arguments=(PLAN,),
        flags=(Flag("dry-run", "show the changes without making them"),),
        details="File paths start at the top of the repository. Running tasks continue, and no task is "
        "removed. The project of the plan decides where the tasks go, and later commands in this repository "
        "use it, unless --project or COORD_PROJECT names another.",
    ),
    CommandSpec(
        "plan init",
        "write an example plan to start from",
        handler="coord.transports.cli.handlers.plans:init",
        examples=("coord plan init", "coord plan init plans/login.yaml"),
        arguments=(Argument("file", "the file to write (default: plan.yaml)", optional=True),),
        connects=False,
        details="Never overwrites a file.",
    ),
    CommandSpec(
        "plan check",
        "check a plan without loading it; exit 2 if it is invalid",
        handler="coord.transports.cli.handlers.plans:check",
        reads=True,
        examples=("coord plan check plan.yaml",),
        arguments=(PLAN,),
    ),
    CommandSpec(
        "plan show",
        "show the tracks, their tasks and their progress",
        handler="coord.transports.cli.handlers.plans:show",
        reads=True,
        examples=("coord plan show", "coord plan show --svg > plan.svg"),
        flags=(
            Flag("table", "print a table instead of a picture"),
            Flag("picture", "print the picture even without a terminal", excludes="table"),
            Flag("mermaid", "print a Mermaid flowchart", excludes="picture"),
            Flag("svg", "print an SVG drawing", excludes="mermaid"),
        ),
    ),
)
