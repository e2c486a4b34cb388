"""Errors before a request leaves.

LlmError
├── UnsendableRequest    the request does not fit the wire protocol: change it, do not retry
└── InvalidTransport     the TLS or proxy settings are unusable: correct the configuration
"""


class LlmError(Exception):
    """Base of this package's errors."""


class UnsendableRequest(LlmError):
    """The wire protocol cannot express a part of the request."""


class InvalidTransport(LlmError):
    """A file in the transport settings is unusable, or a package for them is missing."""
