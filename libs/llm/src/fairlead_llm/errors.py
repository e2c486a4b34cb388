"""Ways a request can be refused before it leaves.

LlmError
└── Unsendable    the request does not fit the wire protocol: change it, a retry cannot help
"""


class LlmError(Exception):
    """Base of this package's errors."""


class Unsendable(LlmError):
    """The wire protocol has no way to say what the request holds."""
