"""The frozen values that packages exchange, and the times and ids in them."""
