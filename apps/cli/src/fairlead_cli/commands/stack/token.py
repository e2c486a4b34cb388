"""`fairlead token`: creates, lists and revokes static keys in a keys file."""

import argparse
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from rich.markup import escape

from fairlead_cli.embedded.state_directory import StateDirectory
from fairlead_cli.errors import CommandError, UsageError
from fairlead_cli.json_output import print_json
from fairlead_cli.outcome import report
from fairlead_cli.terminal import stderr_console, stdout_console, table
from fairlead_service.config.configuration import load
from fairlead_service.identity.key_file import add_key, load_keys, revoke_key
from fairlead_service.identity.keys import KeyEntry, mint_key
from fairlead_service.identity.watched_file import FileUnusable

_LIFETIME: Final = re.compile(r"(\d{1,6})([mhd])")
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}


def run(args: argparse.Namespace) -> int:
    """Change or show the keys file. Running services read the file again within a second."""
    path = _keys_file(args)
    try:
        match args.action:
            case "create":
                _create(path, args)
            case "list":
                _list(path, as_json=args.json)
            case _:
                _revoke(path, args)
    except FileUnusable as error:
        raise CommandError(
            f"{error}: correct the file, or choose another with --keys-file"
        ) from error
    return 0


def _keys_file(args: argparse.Namespace) -> Path:
    if args.secrets is not None:
        from fairlead_cli.deployment.secrets_directory import SecretsDirectory  # noqa: PLC0415

        found = SecretsDirectory(args.secrets).keys_file
        if not found.exists():
            raise UsageError(f"{args.secrets} is no directory of `fairlead secrets`: no {found}")
        return found
    if args.keys_file is not None:
        return Path(args.keys_file)
    if args.config is not None:
        configured = load(args.config, {}).auth.keys_file
        if configured is None:
            raise UsageError(f"{args.config} has no [auth] keys_file: name one with --keys-file")
        return Path(configured)
    return StateDirectory(args.state.absolute()).keys


def _create(path: Path, args: argparse.Namespace) -> None:
    names = [*args.role, *args.scope]
    if not names:
        raise UsageError("say what the key may do: --role user, or --scope session:read")
    try:
        key, entry = mint_key(
            names,
            tenant=args.tenant,
            name=args.name,
            expires=None if args.expires is None else parse_expiry(args.expires, datetime.now(UTC)),
            roots=None if args.root is None else tuple(args.root),
            agents=None if args.agent is None else tuple(args.agent),
            cost=args.cost,
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
        ) from error
    add_key(path, entry)
    _copy_keys(path)
    if args.json:
        print_json({"key": key, **_fields(entry), "file": str(path)})
        return
    sys.stdout.write(f"{key}\n")
    notice = f"[dim]written to {escape(str(path))}; the key is shown only now[/]"
    stderr_console().print(notice, soft_wrap=True)


def parse_expiry(text: str, now: datetime) -> datetime:
    """When a key ends: after a time such as `30d`, or at a moment. Raises UsageError."""
    lifetime = _LIFETIME.fullmatch(text)
    if lifetime is not None:
        return now + timedelta(**{_UNITS[lifetime[2]]: int(lifetime[1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--expires {text}: write 30d, 12h, 90m or 2027-01-31T00:00:00Z") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _list(path: Path, *, as_json: bool) -> None:
    entries = load_keys(path).keys
    if as_json:
        for entry in entries:
            print_json(_fields(entry))
        return
    grid = table("ID", "NAME", "TENANT", "MAY", "STATE")
    for entry in entries:
        roles = ", ".join(entry.roles)
        grid.add_row(entry.id, escape(entry.name), entry.tenant, roles, _state(entry))
    stdout_console().print(grid)


def _fields(entry: KeyEntry) -> dict[str, Any]:
    return entry.model_dump(mode="json", exclude_none=True, exclude={"sha256"})


def _state(entry: KeyEntry) -> str:
    if entry.revoked is not None:
        return f"revoked {entry.revoked:%Y-%m-%d}"
    if entry.expires is None:
        return "valid"
    tense = "expired" if entry.expires <= datetime.now(UTC) else "valid until"
    return f"{tense} {entry.expires:%Y-%m-%d %H:%M}"


def _revoke(path: Path, args: argparse.Namespace) -> None:
    key_id = args.id
    entry = revoke_key(path, key_id, at=datetime.now(UTC))
    if entry is None:
        raise CommandError(f"{path} has no key {key_id}: see `fairlead token list`")
    _copy_keys(path)
    report(args, f"{key_id} is revoked", id=key_id, revoked=True)


def _copy_keys(path: Path) -> None:
    """Let the other readers of a deployment know what its gateway knows."""
    from fairlead_cli.deployment.secrets_directory import find_secrets  # noqa: PLC0415

    secrets = find_secrets(path)
    if secrets is not None:
        secrets.copy_keys()
