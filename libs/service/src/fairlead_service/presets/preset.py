"""The presets: how to reach well-known providers and local model servers."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Preset:
    """One provider. Without `key_env` the provider is a server on this machine and needs no key.

    `base_url_env` is a variable of the provider's own tools that names another address.
    `data` names the provider in the model data; without it every model name is accepted.
    `output` bounds an answer where the protocol asks for a bound.
    """

    name: str
    label: str
    protocol: str
    base_url: str
    base_url_env: str
    key_env: str | None = None
    data: str | None = None
    default: str | None = None
    small: str | None = None
    output: int = 0

    @property
    def is_local(self) -> bool:
        """Whether the provider is a server on this machine."""
        return self.key_env is None

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are listed without being named: the default model comes first."""
        return tuple(name for name in (self.default, self.small) if name is not None)


_ALL: Final = (
    Preset(
        name="anthropic",
        label="Anthropic",
        protocol="anthropic-messages",
        base_url="https://api.anthropic.com",
        base_url_env="ANTHROPIC_BASE_URL",
        key_env="ANTHROPIC_API_KEY",
        data="anthropic",
        default="claude-sonnet-5-5",
        small="claude-haiku-5-5",
        # The protocol requires a bound, and 4,096 tokens would cut off long files.
        output=32_000,
    ),
    Preset(
        name="openai",
        label="OpenAI",
        protocol="openai-responses",
        base_url="https://api.openai.com/v1",
        base_url_env="OPENAI_BASE_URL",
        key_env="OPENAI_API_KEY",
        data="openai",
        default="gpt-6.1-sol",
        small="gpt-6-luna",
    ),
    Preset(
        name="gemini",
        label="Gemini",
        protocol="gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta",
        base_url_env="GOOGLE_GEMINI_BASE_URL",
        key_env="GEMINI_API_KEY",
        data="google",
        default="gemini-3.8-flash",
        small="gemini-3.5-flash-lite",
    ),
    Preset(
        name="openrouter",
        label="OpenRouter",
        protocol="openai-chat",
        base_url="https://openrouter.ai/api/v1",
        base_url_env="OPENROUTER_BASE_URL",
        key_env="OPENROUTER_API_KEY",
        data="openrouter",
        default="anthropic/claude-sonnet-5.5",
        small="anthropic/claude-haiku-5.5",
    ),
    Preset(
        name="ollama",
        label="Ollama",
        protocol="openai-chat",
        base_url="http://127.0.0.1:11434/v1",
        base_url_env="OLLAMA_BASE_URL",
    ),
    Preset(
        name="lmstudio",
        label="LM Studio",
        protocol="openai-chat",
        base_url="http://127.0.0.1:1234/v1",
        base_url_env="LMSTUDIO_BASE_URL",
    ),
    Preset(
        name="vllm",
        label="vLLM",
        protocol="openai-chat",
        base_url="http://127.0.0.1:8000/v1",
        base_url_env="VLLM_BASE_URL",
    ),
)
PRESETS: Final[Mapping[str, Preset]] = MappingProxyType({preset.name: preset for preset in _ALL})
"""The presets by name, in the order in which `fairlead` prefers them."""


def suggest(name: str, names: Mapping[str, object] | tuple[str, ...]) -> str:
    """A question such as `; did you mean 'anthropic'?`, or nothing. The newest name is the last."""
    close = get_close_matches(name, names, n=1, cutoff=0.6)
    longer = [each for each in names if name and name.lower() in each.lower()]
    meant = close or longer[-1:]
    return f"; did you mean {meant[0]!r}?" if meant else ""
