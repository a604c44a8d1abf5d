"""Make agent programs use Backstory, and undo that without a trace.

Each program is one file and one row in ``install.hosts``: which parts go into which of
its files. ``install.apply`` puts them there and takes them out again, and
``install.doctor`` tells whether they work.
"""
