"""Commands about mirrors, and the import of tasks from the layout of one of them."""

from coord.transports.cli.spec import Argument, CommandSpec, Flag

NAME = Argument("name", "which mirror", choices=("contract", "claude-coord", "agent-claims"))

COMMANDS = (
    CommandSpec(
        "mirror on",
        "show the store as files of another layout",
        handler="coord.transports.cli.handlers.awareness.mirrors:mirror_on",
        examples=("coord mirror on contract", "coord mirror on claude-coord --folder ~/claude-coord"),
        arguments=(NAME,),
        flags=(
            Flag("folder", "where claude-coord is (default /tmp/claude-coord)", "DIR"),
            Flag("verbose", "log renewals, waits and refusals, too"),
        ),
        details="contract writes .contract/ at the top of the repository, agent-claims .claude/ in every "
        "worktree. coord never reads these files: it overwrites changes by others and reports "
        "them. Git ignores them. They belong to this machine.",
    ),
    CommandSpec(
        "mirror off",
        "remove the files of a mirror",
        handler="coord.transports.cli.handlers.awareness.mirrors:mirror_off",
        examples=("coord mirror off contract",),
        arguments=(NAME,),
        details="Removes every file and folder that coord wrote for it, and nothing else.",
    ),
    CommandSpec(
        "mirror list",
        "list the mirrors of this machine",
        handler="coord.transports.cli.handlers.awareness.mirrors:mirror_list",
        reads=True,
        examples=("coord mirror list",),
    ),
    CommandSpec(
        "import contract",
        "add the tasks of .contract/queue, once",
        handler="coord.transports.cli.handlers.awareness.mirrors:import_contract",
        examples=("coord import contract --dry-run", "coord import contract old/.contract"),
        arguments=(Argument("folder", "default: .contract here", optional=True),),
        flags=(Flag("dry-run", "only show what would be added"),),
        details="Reads every .json file that has a task_id. Tasks that coord has already stay as they are. "
        "If a file is damaged, nothing is added.",
    ),
)
