"""What agents find written about coord: facts, short, in the place where their tool looks for such."""

SKILL_PATH = ".claude/skills/agent-sync/SKILL.md"

BLOCK = """## Working beside other agents

Several agents may work in this repository at the same time. `coord` keeps them apart. Hooks and git gates
apply it, so nothing has to be remembered:

- An edit locks its file by itself. If another session holds the file, the edit is refused; the refusal says
  who holds it, until when, and what can be done. The lock ends when the file is committed, or as it was.
- Files changed by a shell command are noticed as well.
- `coord peers` shows who is here, `coord locks` who holds what, `coord recv` messages from others.
- `coord lock PATH` waits in the queue for a file; `coord send SESSION request 'TEXT'` asks its holder.
- `coord commit -m TEXT` commits exactly the files that this session holds.
- The settings of these hooks are changed by people, not by agents.
"""

SKILL = """---
name: agent-sync
description: How agents share this repository through coord. What a refused edit, commit or merge means, how
  to wait for a file or ask its holder, how to take a task and commit only one's own files. Useful when coord
  refused something, or when other sessions are at work here.
---

# Sharing a repository with other agents

Hooks register this session, lock what it edits, keep it alive and deliver messages. What is left to decide:

- **Who else is here, and what they hold**: `coord peers`, `coord locks`.
- **An edit was refused, because the file is held**: other work first, or `coord lock PATH --wait 10m` to
  wait in the queue. The file may be another one afterwards, so it is read again before the edit.
- **The holder should know**: `coord send SESSION request 'need PATH for …'`. The answer comes with a later
  tool call.
- **Several files belong together**: `coord lock A B C` takes all of them or none; `coord lock 'src/api/**'`
  takes a folder.
- **A build, a release, a push of main**: the hook takes the lock for the command. By hand:
  `coord guard build -- make`.
- **Looking for work**: `coord task next`; `coord task submit` hands the result in.
- **Committing**: `coord commit -m TEXT` takes the files that this session holds, and no others.
- **A lock was lost** (its lease ended, or it was preempted): the message says in which salvage ref the edits
  are. The files belong to somebody else now.
- **Before stopping**: what was edited is committed or undone; `coord unlock PATH` releases what was locked
  by hand.

The fence of a lock, a number, is written into the commit. A commit under a fence that was superseded does not
reach main: its work is repeated on top of what the next holder made.

Locks of sessions that are proven dead become free by themselves. `coord steal` is for people.
"""
