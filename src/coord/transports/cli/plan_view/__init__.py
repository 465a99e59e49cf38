"""Pictures of a plan: as text for a terminal, as a Mermaid flowchart, as SVG.

Pure functions over tasks; nothing here reads the store. Start reading at layout.py.
"""
