"""Speed and memory, measured on this machine beside what the machine itself can do.

``python -m bench`` runs everything, ``python -m bench import memory`` some of it. Each
figure stands beside a baseline taken in the same run, because the ratio of the two
travels from machine to machine and the figure alone does not.
"""
