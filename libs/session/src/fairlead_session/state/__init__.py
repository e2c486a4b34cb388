"""The state of a session: frozen values that the log folds into. Replay rebuilds all of it.

A session consists of parts. Each part is one module here and one reducer in `fold/`.
"""
