"""Hooks that Claude Code sends to the hub by HTTP: what `coord init --hub=http` needs, and its checks.

`form.py` says whether the form can be used here; `token_file.py` keeps the token, which is in no settings
file; `checks.py` is for `coord doctor`. The hub answers in `transports/hub/hooks/http_form.py`.
"""
