"""What a language model writes: daily logs, and changes that tidy MEMORY.md.

``triggers`` marks sessions as due, and ``schedule`` lets one process at a time do the
work: ``summarize`` writes the logs, ``curate`` tidies the memory, ``answer`` parses the
model's answers, and ``budget`` limits what all of this may cost in a day.
"""
