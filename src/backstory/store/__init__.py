"""All SQL: the interface of a store and its implementations."""
