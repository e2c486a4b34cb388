"""Watches the files behind the context of a location, so that an unchanged location is not read again."""
