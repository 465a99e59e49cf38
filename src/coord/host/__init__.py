"""What this machine knows: the calling process, the repository, its store and its settings.

May import: core, stores. Must not import: engine, sdk (they ask the host; the host opens nothing).
Start reading at caller.py (who calls) and store_location.py (which store belongs to a repository). Every
command passes through these modules, so each import here costs every command; rare ones are imported in
the function that needs them.
"""
