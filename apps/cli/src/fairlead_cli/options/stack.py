"""The options of the commands for a stack and its operators, a function for each module of commands."""

import argparse
import os
from pathlib import Path
from typing import Final

from fairlead_cli.embedded.ports import LOOPBACK
from fairlead_cli.options.shared import add_config, add_gateway, add_http, add_json, port
from fairlead_cli.service_names import SCALABLE
from fairlead_schema.identity.scopes import ROLES, SCOPES
from fairlead_service.presets.preset import PRESETS

DEFAULT_TENANT: Final = "default"
# Addresses hold passwords, so they come from variables and never from the command line.
ADMIN_VARIABLE: Final = "FAIRLEAD_DSN_ADMIN"
ROLE_VARIABLES: Final = (
    "FAIRLEAD_DSN_MIGRATOR",
    "FAIRLEAD_DSN_PROJECTOR",
    "FAIRLEAD_DSN_GATEWAY",
)
# A job may start before the nodes of a new cluster have elected a leader.
PROVISION_WAIT_S: Final = 60.0
BENCH_FILE: Final = Path(".bench/bench.json")
SHELLS: Final = ("bash", "zsh", "fish")
CONFIG_FILE: Final = Path("fairlead.toml")


def init(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--config",
        type=Path,
        default=CONFIG_FILE,
        metavar="FILE",
        help="where to write (fairlead.toml)",
    )
    add("--provider", metavar="NAME", help=f"one of {', '.join(PRESETS)}")
    add("--model", metavar="MODEL", help="default: the provider's usual model")
    add("--yes", action="store_true", help="ask nothing: take the first provider that is found")
    add("--force", action="store_true", help="replace a file that exists")
    add("--no-call", action="store_true", help="write the file without a call to the model")
    add_json(parser)


def up(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--port", type=port, metavar="N", help="HTTP port (default 8420; 0 picks a free one)")
    add("--state", type=Path, default=Path(".fairlead"), metavar="DIR", help="where data lives")
    add("--config", type=Path, metavar="FILE", help="default: ./fairlead.toml when it exists")
    add(
        "--scale",
        action="append",
        default=[],
        metavar="NAME=N",
        help=f"how many processes of a service to run ({', '.join(SCALABLE)}); repeatable",
    )
    add(
        "--nats-nodes",
        type=int,
        default=1,
        metavar="N",
        help="nats-servers: 1, or a cluster of 3 with three copies of every stream (default 1)",
    )
    add("--solo", action="store_true", help="all services in one process, for small machines")
    add("--sim", action="store_true", help="start the simulated provider, no keys needed")
    add("--open", action="store_true", help="serve this machine without a key")
    add_json(parser, "one line of JSON on standard output when ready")


def demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--solo", action="store_true", help="all services in one process")


def models(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("filter", nargs="?", default="", metavar="TEXT", help="only names with this text")
    add("--all", action="store_true", help="also models that the file does not name")
    add_json(parser, "one model per line")
    add(
        "--config",
        type=Path,
        metavar="FILE",
        help="default: ./fairlead.toml, else that of the stack, else keys and servers found here",
    )
    add_http(parser)


def token(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="make a key and print it, once")
    add = create.add_argument
    add("--role", action="append", default=[], choices=list(ROLES), help="repeatable")
    add("--scope", action="append", default=[], choices=list(SCOPES), help="repeatable")
    add("--tenant", default=DEFAULT_TENANT, help=f"default: {DEFAULT_TENANT}")
    add("--name", default="", help="what the key is for")
    add("--expires", metavar="WHEN", help="such as 30d, 12h, 90m or 2027-01-31T00:00:00Z")
    add("--root", action="append", metavar="DIR", help="sessions only inside it; repeatable")
    add("--agent", action="append", metavar="NAME", help="sessions only with it; repeatable")
    add("--cost", type=float, metavar="USD", help="the largest budget of a session")
    listing = actions.add_parser("list", help="list the keys of the file, without secrets")
    revoke = actions.add_parser("revoke", help="end a key at once")
    revoke.add_argument("id", help="the part between the underscores of the key")
    for action in (create, listing, revoke):
        place = action.add_mutually_exclusive_group()
        place.add_argument(
            "--keys-file", type=Path, metavar="FILE", help="default: [auth] keys_file, else STATE"
        )
        place.add_argument(
            "--secrets", type=Path, metavar="DIR", help="the keys of a directory of `secrets`"
        )
        add_json(action, "one line of JSON per key")
        add_config(action)


def doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--http", metavar="URL", help="also check this gateway")
    parser.add_argument("--monitor", metavar="URL", help="nats-server's monitoring address")
    add_json(parser, "one line of JSON per finding")
    add_config(parser)


def provision(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--nats", metavar="URL", help="default: as the configuration says")
    add("--replicas", type=int, metavar="N", help="copies of each stream")
    add(
        "--wait",
        type=float,
        default=PROVISION_WAIT_S,
        metavar="SECONDS",
        help=f"how long to wait for servers that do not answer yet ({PROVISION_WAIT_S:.0f})",
    )
    add(
        "--finalise",
        action="store_true",
        help="write the events of this release from now on: no older release can read the log then",
    )
    add(
        "--restored",
        action="store_true",
        help="the log was restored from a backup: cursors and checkpoints of the lost log are void",
    )
    add(
        "--shrink",
        action="store_true",
        help="also apply limits of [streams] that are narrower than now: what exceeds them is dropped",
    )
    add("--nats-auth", type=Path, metavar="DIR", help="write keys and grants here, and stop")
    add("--keys", type=Path, metavar="FILE", help="with --nats-auth: the keys of HTTP get keys too")
    add(
        "--callout",
        action=argparse.BooleanOptionalAction,
        help="with --nats-auth: clients may connect with keys of HTTP (`fairlead nats-callout`)",
    )
    for option, names, what in (
        ("--principal", "NAME:TENANT:ROLES", "a tenant's own client: service:billing:acme:service"),
        ("--tenant", "NAME", "a tenant whose clients the callout connects"),
        ("--without", "NAME:TENANT", "revoke a principal and delete its key"),
        ("--rotate", "NAME", "make a new key; the old one counts until --retire"),
        ("--retire", "NAME", "end the old key of a service or of NAME:TENANT"),
    ):
        add(option, action="append", default=[], metavar=names, help=f"with --nats-auth: {what}")
    add_json(parser, "one line of JSON per change")
    add_config(parser)


def nats_callout(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--nats-auth",
        type=Path,
        required=True,
        metavar="DIR",
        help="the directory that `fairlead provision --nats-auth DIR --callout` wrote",
    )
    add("--nats", metavar="URL", help="default: as the configuration says")
    add_config(parser)


def migrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--create-roles",
        action="store_true",
        help=f"first create the roles in {', '.join(ROLE_VARIABLES)}, as {ADMIN_VARIABLE}",
    )
    add_json(parser)
    add_config(parser)


def rebuild(parser: argparse.ArgumentParser) -> None:
    add_json(parser)
    add_config(parser)
    parser.add_argument(
        "--processes",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="at most so many processes share the shards of a long log (as many as cores)",
    )
    parser.add_argument(
        "--cold", type=Path, metavar="DIR", help="the files of stored sessions, for their messages"
    )


def verify(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("session", metavar="SESSION|FILE", nargs="?", help="only this session, or an exported file")
    add("--tenant", default=DEFAULT_TENANT, help="whose session it is")
    add("--file", type=Path, metavar="FILE", help="verify an exported file instead of the log")
    add("--export", type=Path, metavar="FILE", help="also write every commit read, one line each")
    add_json(parser, "one line of JSON per violation, and one at the end")
    add_config(parser)


def quota(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--tenant", metavar="NAME", help="another tenant: ask the projector over NATS")
    add_json(parser)
    add_gateway(parser)
    add_config(parser)


def bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="WHAT",
        nargs="?",
        choices=("all", "chat", "cost", "memory", "path", "capacity", "streams"),
        default="all",
        help="all: throughput and latency; chat: a terminal while text streams in; cost: processor time and counts of one turn; "
        "memory: the memory of each process over many turns; "
        "path: the stages of a turn in one session; "
        "capacity: what each act costs and stores, for the size of a deployment; "
        "streams: 2,000 clients of 2,000 sessions, 500 clients of one (all)",
    )
    parser.add_argument("--out", type=Path, help=f"JSON file ({BENCH_FILE}; the others beside it)")
    parser.add_argument(
        "--solo", action="store_true", help="cost, memory, path: with all services in one process"
    )
    parser.add_argument("--turns", type=int, default=10_000, help="memory: how many turns (10000)")
    parser.add_argument(
        "--cache-sessions",
        type=int,
        metavar="N",
        help="memory: so many sessions in the cache of each service, so that it is full soon",
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="factor for the number of samples (1.0)"
    )
    parser.add_argument(
        "--mode",
        choices=("both", "always", "relaxed"),
        default="both",
        help="sync of commits to disk (both)",
    )


def sim(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--host", default=LOOPBACK, help=f"address to listen on ({LOOPBACK})")
    add("--port", type=port, default=0, help="port to listen on (default: a free one)")
    add("--scenarios", type=Path, metavar="FILE", help="named scripts, as TOML")
    add("--seed", type=int, default=0, help="seed of everything random (0)")
    add("--api-key", metavar="KEY", help="refuse requests without this key")
    add_json(parser, "print the address as one line of JSON")


def completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "shell", metavar="SHELL", choices=SHELLS, help="eval the script in the shell's start file"
    )
