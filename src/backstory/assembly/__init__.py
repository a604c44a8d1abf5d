"""Build the parts of one home from its settings, each when it is first needed.

Some parts take longer to import than most uses of a memory take, so they are imported
where they are built. Each class adds some to those of the one before; ``Parts`` has all
of them.
"""
