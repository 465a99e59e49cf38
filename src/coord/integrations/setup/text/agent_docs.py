"""The texts about coord that agents read: a block in their guide file, and a skill for Claude Code."""

SKILL_PATH = ".claude/skills/agent-sync/SKILL.md"

BLOCK = """## Working beside other agents

Several agents may work in this repository at the same time. `coord` keeps them apart. Hooks and git gates
apply it, so you need not remember anything:

- An edit locks its file by itself. If another session holds the file, the hook refuses the edit and names the
  holder, the expiry and your options. The lock ends when you commit the file or undo your changes.
- The hooks also notice files that a shell command changes.
- `coord peers` shows the other sessions, `coord locks` their locks, `coord recv` their messages.
- `coord lock PATH` waits for a file; `coord send NAME request 'TEXT'` asks its holder.
- `coord commit -m TEXT` commits exactly the files that this session holds.
- Only people change the settings of these hooks.
"""

SKILL = """---
name: agent-sync
description: How agents share this repository through coord. Explains refused edits, commits and merges, how
  to wait for a file or ask its holder, how to claim a task and commit only your own files. Use it when coord
  refused something, or when other sessions work here.
---

# Sharing a repository with other agents

Hooks register this session, lock the files that it edits, keep it alive and deliver messages. You decide the
rest:

- **See the other sessions and their locks**: `coord peers`, `coord locks`.
- **The hook refused an edit, because another session holds the file**: do other work first, or wait with
  `coord lock PATH --wait 10m`. Then read the file again, because it may have changed.
- **Ask the holder**: `coord send NAME request 'need PATH for …'`. The answer arrives with a later tool
  call.
- **An emergency stopped a call**: act on it, then `coord ack ID`. `coord send NAME emergency TEXT` stops
  others.
- **Somebody delegated work to you**: `coord delegation done ID` reports it.
- **Give your work to another agent**: `coord handoff PATH NAME`, or `coord handoff TASK NAME`.
- **Lock several files together**: `coord lock A B C` acquires all of them or none; `coord lock 'src/api/**'`
  acquires a folder.
- **Run a build, a release, a push of main**: the hook acquires the lock for the command. By hand:
  `coord guard build -- make`.
- **Find work**: `coord task next` claims a task and locks its files; `coord task submit` submits its result
  and releases them. If the claim loses one of these locks, the claim ends too: stop, and take the next task.
- **Commit**: `coord commit -m TEXT` commits the files that this session holds, and no others.
- **You lost a lock** (its lease expired, or somebody preempted it): the message names the salvage ref with
  your edits. Another session may hold the files now.
- **Before you stop**: commit or undo your edits; release the locks that you acquired by hand with
  `coord unlock --all`; it keeps what your claims need.

Each lock has a number, its fence, and coord writes it into the commit. A commit under a superseded fence
cannot reach main: repeat the work on top of the next holder's version.

coord frees the locks of sessions that are proven dead, except names that somebody locked by hand
(`coord lock main-push`): those stay until somebody steals them. `coord steal` is for people.
"""
