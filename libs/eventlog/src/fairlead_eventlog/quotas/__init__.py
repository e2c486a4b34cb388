"""Quotas: what tenants and principals use, and how running work keeps to what they may."""
