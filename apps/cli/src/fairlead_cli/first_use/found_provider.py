"""Providers that this machine can use: a key in the environment, or a server that answers here."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from fairlead_cli.errors import UsageError
from fairlead_service.presets.preset import PRESETS, Preset


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that a local server offers. Its window is 0 where the server does not say it."""

    id: str
    context: int = 0


@dataclass(frozen=True, slots=True)
class FoundProvider:
    """A preset with the address to use, and the models that a local server offers there."""

    preset: Preset
    base_url: str
    served: tuple[ServedModel, ...] = ()

    @property
    def default_model(self) -> str | None:
        """The model to begin with. A model for embeddings cannot answer."""
        able = (model.id for model in self.served if "embed" not in model.id.lower())
        return self.preset.default or next(able, None)

    @property
    def is_at_usual_address(self) -> bool:
        """Whether the address is that of the preset, and no variable names another one."""
        return self.base_url == self.preset.base_url

    @property
    def origin(self) -> str:
        """Where the provider was found, for people."""
        return f"the key in {self.preset.key_env}" if self.preset.key_env else self.base_url


def find_keys(env: Mapping[str, str]) -> tuple[FoundProvider, ...]:
    """The hosted providers whose key is in the environment. Raises UsageError for a bad address."""
    return tuple(
        FoundProvider(preset, provider_address(preset, env))
        for preset in PRESETS.values()
        if preset.key_env is not None and env.get(preset.key_env, "").strip()
    )


def provider_address(preset: Preset, env: Mapping[str, str]) -> str:
    """The preset's address, or the one in the variable that the provider's own tools read.

    Raises UsageError. A password in an address would stand in the configuration for all to read.
    """
    address = env.get(preset.base_url_env, "").strip()
    if not address:
        return preset.base_url
    try:
        parts = urlsplit(address)
        is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
        is_usable = is_usable and "@" not in parts.netloc and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise UsageError(
            f"{preset.base_url_env} must be an address such as {preset.base_url}, without a"
            " password: correct it, or unset it"
        )
    return address.rstrip("/")
