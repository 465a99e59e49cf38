"""Plans and the queue: adding tasks, splitting them, and claiming the next one an agent may take.

May import: routing, tasks, locks, messages, sessions, limits. Must not import: lifecycle (dispatch a command
instead). Start reading at queue.py; idle.py explains why the queue has no task. Records are those of tasks
(tasks/schema.py): a planned task is a task with a `Spec`.
"""
