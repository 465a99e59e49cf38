"""What a user can type: one module per group of `coord --help`, each with a tuple `COMMANDS`.

May import: `spec.py`. Must not import: handlers, the SDK (parsing and help need neither).
Parsing, help, completion and the reference pages follow from these specs. Start reading at registry.py.
"""
