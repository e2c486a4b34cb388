"""Messages that the terminal client knows as two: a prompt and its answer."""

from fairlead_gateway.opencode_view.translation.message_fields import (
    Json,
    Setting,
    ViewedMessage,
    assistant_info,
    build_message,
    user_info,
)
from fairlead_schema.message import CompactionMessage, ShellMessage


def view_compaction(message: CompactionMessage, setting: Setting) -> tuple[ViewedMessage, ...]:
    created = message.time.created
    asked = user_info(message.id, created, setting, setting.agent, setting.model)
    divider: Json = {"type": "compaction", "auto": message.reason == "auto"}
    info = assistant_info(message.id + "a", created, setting, "compaction", setting.model)
    info |= {"summary": True, "finish": "stop", "parentID": message.id}
    info["time"]["completed"] = created
    text: Json = {"type": "text", "text": message.summary, "time": {"start": created}}
    text["time"]["end"] = created
    return build_message(asked, [(0, divider)]), build_message(info, [(1, text)])


def view_shell(message: ShellMessage, setting: Setting) -> tuple[ViewedMessage, ...]:
    """A person's own command: a prompt that the client hides, and an answer with one call."""
    created, completed = message.time.created, message.time.completed
    asked = user_info(message.id, created, setting, setting.agent, setting.model)
    hidden: Json = {"type": "text", "text": "The user ran a command", "synthetic": True}
    info = assistant_info(message.id + "a", created, setting, setting.agent, setting.model)
    info["parentID"] = message.id
    state: Json = {
        "status": "running",
        "input": {"command": message.command},
        "metadata": {"output": message.output},
        "time": {"start": created},
    }
    if completed is not None:
        info |= {"finish": "stop", "time": {"created": created, "completed": completed}}
        state |= {"status": "completed", "output": message.output, "title": message.command}
        state["time"] = {"start": created, "end": completed}
    call: Json = {"type": "tool", "tool": "bash", "callID": message.call_id, "state": state}
    return build_message(asked, [(0, hidden)]), build_message(info, [(1, call)])
