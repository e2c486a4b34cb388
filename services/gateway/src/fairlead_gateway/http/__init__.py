"""HTTP: operations as data, request parsing, answers, streams."""
