"""From the files of agent programs to the history."""
