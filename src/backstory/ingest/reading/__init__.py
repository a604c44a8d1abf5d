"""Read one source into the history: a line file, a document or a database.

One module for each kind of format. All of them hand what they read to an ``Intake`` and
end with a commit that says how far the source is read.
"""
