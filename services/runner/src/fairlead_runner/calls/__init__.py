"""Tool calls from the runner's side: what is offered, and requests to workers."""
