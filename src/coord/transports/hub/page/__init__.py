"""The page: its files (`static/`), which hold no data, and what it asks the hub for.

`assets.py` serves the files. The page is plain ES modules without a build step; start at `static/app.js`.
"""
