"""Speed and memory, measured on this machine and compared with a baseline.

``python -m bench`` runs everything, ``python -m bench import memory`` some of it. The
baseline of each figure is measured at the same time, because the ratio of the two can
be compared between machines, and the figure alone cannot.
"""
