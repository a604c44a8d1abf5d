"""An export: conversations and notes as a folder of files, or as one zip file.

``manifest.json`` names every file with its hash. A conversation is a Markdown file to
read and a JSONL file with everything about it; notes are the files that they were.
"""
