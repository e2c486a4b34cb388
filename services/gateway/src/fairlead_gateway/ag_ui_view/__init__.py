"""The view for front ends that speak AG-UI: a run is one prompt, and its events are server-sent."""
