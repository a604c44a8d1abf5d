"""The run in progress: recorded, searched, and made to fit a model's window."""
