"""The page: its files (`static/`), which hold no data, and what it asks the hub for.

`assets.py` serves the files. The page is plain ES modules without a build step; start at `static/app.js`.
`report.py` writes the page and the log of a run into one file; `static_report/` is in such files only.
"""
