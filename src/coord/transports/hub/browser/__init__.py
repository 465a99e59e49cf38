"""The browser's way in: a link that works once becomes a cookie, which only this page can use.

`links.py` remembers links, `routes.py` answers, `pages.py` has the pages, `command.py` is `coord open`.
"""
