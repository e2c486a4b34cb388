"""Every command: the module that runs it, and its line in the help."""

from typing import Final, NamedTuple


class CommandEntry(NamedTuple):
    """Where a command's module is, under `commands`, and its line in the help."""

    module: str
    summary: str


COMMANDS: Final = {
    "init": CommandEntry("stack.init", "find a model, try it, and write fairlead.toml"),
    "up": CommandEntry("stack.up", "run the whole stack on this machine"),
    "demo": CommandEntry("stack.demo", "see a stack, a session, an answer and its log in a minute"),
    "models": CommandEntry("stack.models", "list the models that can be used"),
    "chat": CommandEntry("session.chat", "talk to a session in the terminal"),
    "prompt": CommandEntry("session.prompt", "send a prompt and watch the answer"),
    "top": CommandEntry("overview.top", "watch sessions, asks, rates and cost, and act on them"),
    "shell": CommandEntry("session.shell", "run a command of your own in a session's location"),
    "tail": CommandEntry("session.tail", "follow the events of a session"),
    "sessions": CommandEntry("overview.sessions", "list sessions"),
    "explain": CommandEntry("overview.explain", "say why a session works or rests"),
    "inbox": CommandEntry("overview.inbox", "list the input that a session has not taken up"),
    "asks": CommandEntry("overview.asks", "list permissions and questions that wait for an answer"),
    "reply": CommandEntry("session.reply", "answer a permission or a question"),
    "interrupt": CommandEntry("session.interrupt", "stop a session's work and keep its inbox"),
    "resume": CommandEntry("session.resume", "run at least one turn of a session"),
    "undo": CommandEntry("session.undo", "take the last prompt and its file changes back"),
    "redo": CommandEntry("session.redo", "bring back what the last undo took"),
    "cancel": CommandEntry("session.cancel", "withdraw one pending input"),
    "rename": CommandEntry("session.rename", "give a session a title of your own"),
    "move": CommandEntry("session.move", "let a session work in another directory or pool"),
    "cost": CommandEntry("overview.cost", "say what a session or all of them have cost"),
    "export": CommandEntry("session.export", "write sessions to a file that can be verified"),
    "import": CommandEntry("session.import_file", "bring the sessions of an exported file here"),
    "acp": CommandEntry("session.acp", "let an editor drive sessions (Agent Client Protocol)"),
    "webhook": CommandEntry("hooks.webhook", "send events to a URL: create, list, test, pause"),
    "schedule": CommandEntry("hooks.schedule", "send prompts at a time, or again and again"),
    "token": CommandEntry("stack.token", "create, list and revoke keys for the HTTP API"),
    "doctor": CommandEntry("stack.doctor", "check this machine and say how to repair it"),
    "secrets": CommandEntry(
        "operations.secrets", "make the keys, certificates and passwords of a deployment"
    ),
    "provision": CommandEntry("stack.provision", "create or update the streams"),
    "nats-callout": CommandEntry(
        "stack.nats_callout", "let clients connect to NATS with the keys of HTTP"
    ),
    "migrate": CommandEntry("stack.migrate", "create or update the tables and roles in Postgres"),
    "rebuild": CommandEntry("stack.rebuild", "drop the read models and rebuild them from the log"),
    "verify": CommandEntry(
        "stack.verify", "check the log: all sessions, one session, or an exported file"
    ),
    "audit": CommandEntry(
        "operations.audit", "verify the live log for ever, and count what breaks a rule"
    ),
    "backup": CommandEntry("operations.backup", "copy a running deployment into a directory"),
    "restore": CommandEntry("operations.restore", "bring a backup into an empty deployment"),
    "capacity": CommandEntry("operations.capacity", "compute what so many agents need"),
    "purge": CommandEntry(
        "operations.purge", "remove everything that is stored of a session or a tenant"
    ),
    "cold": CommandEntry(
        "operations.cold", "move old sessions into files, and bring them back under their ids"
    ),
    "pool": CommandEntry("operations.pool", "list the pools of tool workers, or drain one"),
    "quota": CommandEntry("stack.quota", "show what a tenant uses of each of its quotas"),
    "bench": CommandEntry("stack.bench", "measure throughput and latency"),
    "sim": CommandEntry("stack.sim", "run the simulated model provider alone"),
    "completion": CommandEntry("stack.completion", "print the completion script of a shell"),
}
