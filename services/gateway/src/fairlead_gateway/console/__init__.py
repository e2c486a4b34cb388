"""The console: a page for people, served over the public API alone, and how a browser signs in."""
