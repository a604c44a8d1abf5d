"""PostgreSQL: one database for many tenants, each of whom sees only its own rows."""
