"""Says why a small call to a model failed, and what a person can do."""

from collections.abc import Mapping
from typing import Final

from fairlead_cli.first_use.found_provider import FoundProvider
from fairlead_schema.catalog import ModelRef
from fairlead_schema.provider.events import ProviderFailure

MESSAGE_LENGTH_MAX: Final = 300
PROXY_VARIABLES: Final = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")
ANOTHER_PROVIDER: Final = "choose another provider with --provider"


def explain_failure(
    failure: ProviderFailure, found: FoundProvider, ref: ModelRef, env: Mapping[str, str]
) -> str:
    """What went wrong, and what a person can do, in one sentence."""
    preset, said = found.preset, " ".join(failure.message.split())[:MESSAGE_LENGTH_MAX]
    who = preset.label if found.is_at_usual_address else f"{preset.label} at {found.base_url}"
    match failure.kind:
        case "auth" if preset.key_env:
            what = f"{who} refused the key in {preset.key_env}"
            mend = f"check the key, or {ANOTHER_PROVIDER}"
        case "network" | "timeout" if failure.status is None:
            what = f"{preset.label} does not answer at {found.base_url}"
            mend = _mend_connection(failure, found, env)
        case "rate-limit" if failure.retryable:
            what, mend = f"{who} takes no more calls now", "wait a little, and try again"
        case "rate-limit":
            what = f"{who} takes no more calls"
            mend = f"add credit to the account, or {ANOTHER_PROVIDER}"
        case "invalid-request" | "context-overflow" | "content-filter":
            what = f"{who} refused a call to {ref.id}"
            mend = f"choose another model with --model (`fairlead models --all {preset.name}`)"
            if not found.is_at_usual_address:
                mend = f"check the address in {preset.base_url_env}, or {mend}"
        case "malformed-stream" | "unknown":
            what = f"{who} does not answer as a provider does"
            mend = f"check the network, and the address in {preset.base_url_env}"
        case _:
            what, mend = f"{who} failed", "try again in a moment"
    status = f" ({failure.status})" if failure.status else ""
    return f"{what}{status}: {said} — {mend}"


def _mend_connection(failure: ProviderFailure, found: FoundProvider, env: Mapping[str, str]) -> str:
    preset = found.preset
    if preset.is_local:
        is_slow = failure.kind == "timeout"
        return "it may still load the model: try again" if is_slow else "start the server"
    section = f"[provider.{preset.name}] of a file from --no-call"
    if "CERTIFICATE_VERIFY_FAILED" in failure.message:
        return f"set ca_file in {section} to the authority that this network uses"
    proxy = next((name for name in PROXY_VARIABLES if env.get(name)), None)
    if proxy is not None:
        return f"Fairlead does not use {proxy}: set proxy in {section}"
    return "check the network and the address"
