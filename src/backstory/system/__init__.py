"""This machine: files, locks, threads, forks, folders, the background worker."""
