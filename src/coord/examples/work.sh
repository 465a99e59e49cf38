#!/bin/sh
# Work on the tasks of the plan, one after the other, until all are done. Start it once per agent:
#
#   AGENT=ada sh work.sh & AGENT=bob sh work.sh & wait
#
# `coord work` claims a task, locks its files, renews the claim while the command runs, and submits the result.
exec coord work --agent "${AGENT:-ada}" -- \
  claude -p 'Do the task in {task_file}. When done, write a JSON object to {result_file}.'
