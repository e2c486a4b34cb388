"""What people read about the pool of a session."""


def silent_pool(pool: str) -> str:
    """Why a session waits for a pool, and what to do."""
    return f"no worker of the pool {pool} answers: start one with tools.pool = {pool}"
