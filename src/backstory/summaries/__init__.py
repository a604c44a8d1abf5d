"""What a language model writes: daily logs and a tidied MEMORY.md."""
