"""Purges of sessions and tenants: everything that is stored of them, in every stream."""
