"""The words of AG-UI for our events, and the other way round. Pure. It loads with the first run."""
