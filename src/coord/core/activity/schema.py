"""Events of edited and read files: the format on disk."""

from coord.core.events import Event


class FileEdited(Event, frozen=True, tag="file.edited"):
    """A tool of a session changed a file; logged once a minute per session and file.

    `others`: how many more files the same call changed, if there were too many to name.
    """

    resource: str
    session: str
    agent: str
    others: int = 0
    project: str = ""


class FileRead(Event, frozen=True, tag="file.read"):
    """A tool of a session read a file; logged once a minute per session and file.

    `others`: how many more files were read, if there were too many to name.
    """

    resource: str
    session: str
    agent: str
    others: int = 0
