"""Tool servers and search services that tools use, and the credentials for them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from fairlead_service.config.section import Section


class Credentials(Section):
    """Variables for a server's process, headers for a server's requests.

    `*_from` names a variable of our own environment, `*_file` a file that holds the value. The names
    are no secrets. The values are secrets: nothing logs or shows them.
    """

    env: dict[str, str] = Field(default_factory=dict)
    env_from: dict[str, str] = Field(default_factory=dict)
    env_file: dict[str, str] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    headers_from: dict[str, str] = Field(default_factory=dict)
    headers_file: dict[str, str] = Field(default_factory=dict)

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The variables with their values. Raises KeyError or OSError if one is missing."""
        return {**self.env, **_look_up(self.env_from, self.env_file, environment)}

    def header_values(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The headers with their values. Raises KeyError or OSError if one is missing."""
        return {**self.headers, **_look_up(self.headers_from, self.headers_file, environment)}

    def secret_values(self, environment: Mapping[str, str]) -> frozenset[str]:
        """The values that are credentials: all headers, and variables that come from elsewhere.

        Raises KeyError or OSError if one is missing.
        """
        variables = _look_up(self.env_from, self.env_file, environment)
        return frozenset({*variables.values(), *self.header_values(environment).values()})

    def merge_over(self, base: "Credentials") -> "Credentials":
        """The base with these credentials added; these win where both have a name."""
        return Credentials(
            **{
                name: {**getattr(base, name), **getattr(self, name)}
                for name in Credentials.model_fields
            }
        )


class ToolServerConfig(Credentials):
    """An MCP server: a command that speaks over its standard streams, or a URL."""

    command: str | None = None
    args: tuple[str, ...] = ()
    directory: str | None = None
    url: str | None = Field(default=None, pattern=r"^https?://")
    timeout_s: float = Field(default=60.0, gt=0, le=3600)
    start_timeout_s: float = Field(default=30.0, gt=0)
    enabled: bool = True
    trust_hints: bool = False

    @model_validator(mode="after")
    def _is_a_command_or_a_url(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("a server has a command or a url, and not both")
        return self


class SearchServiceConfig(Section):
    """An MCP server that searches the web."""

    url: str = Field(pattern=r"^https?://")
    tool: str = "web_search"
    api_key_env: str | None = None
    api_key_header: str = "authorization"


def _look_up(
    variables: Mapping[str, str], files: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    values = {name: environment[variable] for name, variable in variables.items()}
    return {**values, **{name: Path(file).read_text().strip() for name, file in files.items()}}
