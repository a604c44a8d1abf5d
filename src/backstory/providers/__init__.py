"""What is asked over HTTP or run as a model: embedders and language models."""
