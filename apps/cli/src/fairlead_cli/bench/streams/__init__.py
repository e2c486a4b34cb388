"""Measures event streams of a gateway: many clients of one session, and of many sessions."""
