"""Ways a request can be refused before it leaves.

LlmError
├── Unsendable    the request does not fit the wire protocol: change it, a retry cannot help
└── NoTransport   the TLS or proxy settings cannot be used: mend the configuration
"""


class LlmError(Exception):
    """Base of this package's errors."""


class Unsendable(LlmError):
    """The wire protocol has no way to say what the request holds."""


class NoTransport(LlmError):
    """A file that the settings name cannot be used, or a package they need is missing."""
