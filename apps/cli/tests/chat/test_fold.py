"""The fold of events into what the terminal shows."""

from apps.cli.tests.chat.events import (
    TOKENS,
    asked,
    called,
    ended,
    event,
    folded,
    prompt,
    started,
    succeeded,
    text_delta,
    text_ended,
)
from fairlead_cli.chat.view.call_card import card_title
from fairlead_cli.chat.view.entries import (
    CallEntry,
    NoticeEntry,
    PromptEntry,
    ReasoningEntry,
    SummaryEntry,
    TextEntry,
)
from fairlead_cli.chat.view.session_view import SessionView
from fairlead_session.calls.child_ids import child_of


def texts(view: SessionView) -> list[str]:
    return [getattr(entry, "text", "") for entry in view.shown]


def test_a_text_grows_with_its_fragments_and_ends_as_the_log_has_it() -> None:
    view = folded(*prompt("msg_1", "Hi"), text_delta("Hel"), text_delta("lo"))
    growing = view.entries[-1]

    assert isinstance(growing, TextEntry)
    assert (growing.text, growing.is_open, view.state) == ("Hello", True, "working")

    folded(started(), text_ended("Hello!"), text_delta("late"), ended(), view=view)
    assert texts(view) == ["Hi", "Hello!"]
    assert (view.state, view.cost, view.tokens, view.model) == ("ready", 0.5, 135, "sim/fast")


def test_a_prompt_waits_in_the_inbox_until_the_model_sees_it() -> None:
    admitted, promoted = prompt("msg_1", "Later", delivery="queue")
    view = folded(admitted)

    assert [item.text for item in view.inbox.values()] == ["Later"]
    assert view.entries == []

    folded(promoted, view=view)
    assert view.inbox == {}
    assert isinstance(view.entries[0], PromptEntry)


def test_a_prompt_that_was_withdrawn_or_edited_is_shown_so() -> None:
    first, _ = prompt("msg_1", "One")
    second, _ = prompt("msg_2", "Two")
    edited = event("input.edited", messageID="msg_2", prompt={"text": "2"}, delivery="queue")
    view = folded(first, second, event("input.cancelled", messageID="msg_1"), edited)

    assert [item.text for item in view.inbox.values()] == ["2"]


def test_an_expanded_prompt_is_shown_as_it_was_typed() -> None:
    source = {"text": "/review a.py", "fingerprint": "x"}
    body = {
        "text": "Review the file a.py …",
        "source": source,
        "files": [{"uri": "x", "name": "a"}],
    }
    view = folded(event("prompted", messageID="msg_1", prompt=body, delivery="steer"))

    shown = view.entries[0]
    assert isinstance(shown, PromptEntry)
    assert (shown.text, shown.files) == ("/review a.py", ("a",))


def test_a_call_runs_shows_its_live_output_and_ends_with_its_result() -> None:
    delta = event("tool.output.delta", assistantMessageID="msg_x", callID="call_1", delta="one\n")
    view = folded(started(), *called(), delta)
    call = view.call("call_1")

    assert call is not None
    assert (call.state, call.output) == ("running", "one\n")

    folded(succeeded("one\ntwo\n", structured={"exit": 0}), view=view)
    assert (call.state, call.output, call.ended - call.began) == ("done", "one\ntwo\n", 3000)


def test_live_output_goes_on_in_a_new_line_after_a_report_of_progress() -> None:
    ids = {"assistantMessageID": "msg_x", "callID": "call_1"}
    content = [{"type": "text", "text": "one\n"}]
    progress = event("tool.progress", **ids, structured={}, content=content)
    delta = event("tool.output.delta", **ids, delta="two\n")
    call = folded(started(), *called(), progress, delta).call("call_1")

    assert call is not None
    assert call.output == "one\ntwo\n"


def test_an_input_that_the_model_still_writes_names_its_call_early() -> None:
    ids = {"assistantMessageID": "msg_x", "callID": "call_1"}
    view = folded(
        event(
            "tool.input.delta",
            **ids,
            delta='{"path": "src/a \\"b\\".py", "content": "' + "x" * 5000,
        ),
        started(),
        event("tool.input.started", **ids, name="write"),
        event("tool.input.delta", **ids, delta="y" * 1000),
    )
    call = view.call("call_1")

    assert call is not None
    assert (call.tool, call.state, card_title(call)) == ("write", "writing", 'src/a "b".py')
    assert call.written > 6000
    assert len(call.draft) <= 2000

    folded(*called(tool="write", input_={"path": "b.py"}), view=view)
    assert (call.state, card_title(call)) == ("running", "b.py")


def test_a_failed_call_says_why() -> None:
    ids = {"assistantMessageID": "msg_x", "callID": "call_1"}
    view = folded(*called(), event("tool.failed", **ids, error={"message": "No such file"}))
    call = view.call("call_1")

    assert call is not None
    assert (call.state, call.error) == ("failed", "No such file")


def test_a_call_of_a_sub_agent_names_its_session() -> None:
    view = folded(*called(tool="task", input_={"agent": "explore", "description": "Look"}))
    call = view.call("call_1")

    assert call is not None
    assert call.child == child_of("ses_a", "msg_x", "call_1")


def test_an_ask_makes_its_call_wait_and_the_reply_lets_it_run() -> None:
    view = folded(*called(), asked())
    call = view.call("call_1")

    assert call is not None
    assert (call.state, view.state, list(view.asks)) == ("waiting", "asks you", ["per_1"])

    folded(event("permission.v2.replied", requestID="per_1", reply="always"), view=view)
    assert (call.state, view.asks) == ("running", {})
    assert texts(view)[-1] == "Permitted always: bash rm x"


def test_questions_are_asked_until_somebody_answers_or_rejects() -> None:
    question = {"question": "Go?", "header": "Go", "options": []}
    view = folded(event("question.v2.asked", id="que_1", questions=[question]))
    assert list(view.asks) == ["que_1"]

    folded(event("question.v2.rejected", requestID="que_1"), view=view)
    assert view.asks == {}


def test_a_turn_that_died_leaves_no_half_text_when_the_next_one_says_it_again() -> None:
    view = folded(text_delta("Half a", "msg_dead"), started("msg_x"), text_ended("Whole"))

    assert texts(view) == ["Whole"]
    view = folded(text_delta("Half a", "msg_dead"), event("execution.recovered", action="retried"))
    assert texts(view) == []


def test_an_interrupted_step_keeps_what_was_said_and_rests() -> None:
    failed = event("step.failed", assistantMessageID="msg_x", error={"message": "Interrupted"})
    view = folded(*prompt("msg_1", "Hi"), text_delta("So fa"), event("interrupt.requested"))
    assert view.state == "stopping"

    folded(failed, view=view)
    assert (view.state, texts(view)) == ("ready", ["Hi", "So fa", "Interrupted."])


def test_a_failed_step_says_why_in_red() -> None:
    failed = event("step.failed", assistantMessageID="msg_x", error={"message": "No credit"})
    view = folded(*prompt("msg_1", "Hi"), failed)
    notice = view.entries[-1]

    assert isinstance(notice, NoticeEntry)
    assert (notice.text, notice.level) == ("No credit", "error")


def test_a_compaction_becomes_one_summary_and_frees_the_window() -> None:
    begun = event("compaction.started", messageID="msg_c", reason="manual")
    grown = event("compaction.delta", messageID="msg_c", text="We ")
    over = event("compaction.ended", messageID="msg_c", reason="manual", text="We did", recent="")
    used = event("compaction.used", messageID="msg_c", model={}, cost=0.25, tokens=TOKENS)
    view = folded(ended(), begun, grown, over, used)
    summary = view.entries[-1]

    assert isinstance(summary, SummaryEntry)
    assert (summary.text, summary.is_open, view.tokens, view.cost) == ("We did", False, 0, 0.75)


def test_a_compaction_with_nothing_to_do_is_no_error() -> None:
    failed = event("compaction.failed", reason="manual", outcome="nothing", message="No history")
    view = folded(failed)
    notice = view.entries[-1]

    assert isinstance(notice, NoticeEntry)
    assert (notice.level, view.state) == ("info", "ready")


def test_an_undo_hides_what_a_redo_shows_and_a_prompt_takes_away() -> None:
    view = folded(*prompt("msg_1", "One"), text_ended("1", "msg_x"), *prompt("msg_2", "Two"))
    staged = event("revert.staged", revert={"messageID": "msg_x"})
    view.notice("said/1", "Undone.")
    folded(staged, view=view)
    assert texts(view) == ["One", "1", "Undone."]

    folded(event("revert.cleared"), view=view)
    assert texts(view) == ["One", "1", "Two", "Undone."]

    folded(staged, event("revert.committed", messageID="msg_x"), view=view)
    assert texts(view) == ["One", "1", "Undone."]
    assert view.boundary is None


def test_an_undo_of_the_first_prompt_hides_all() -> None:
    view = folded(*prompt("msg_1", "One"), text_ended("1", "msg_x"))
    folded(event("revert.staged", revert={"messageID": "msg_1", "before": True}), view=view)
    assert texts(view) == []

    folded(event("revert.committed", messageID="msg_1", before=True), view=view)
    assert texts(view) == []
    assert view.boundary is None


def test_reasoning_is_apart_from_the_text() -> None:
    ids = {"assistantMessageID": "msg_x", "reasoningID": "r"}
    view = folded(
        event("reasoning.started", **ids),
        event("reasoning.delta", **ids, delta="Hm"),
        event("reasoning.ended", **ids, text="Hmm"),
        text_ended("Yes"),
    )
    thought = view.entries[0]

    assert isinstance(thought, ReasoningEntry)
    assert texts(view) == ["Hmm", "Yes"]


def test_a_person_s_own_command_is_a_card() -> None:
    ids = {"messageID": "msg_s", "callID": "call_s"}
    view = folded(
        event("shell.started", **ids, command="make"),
        event("shell.ended", **ids, output="no", exit=2),
    )
    call = view.entries[0]

    assert isinstance(call, CallEntry)
    assert (call.is_own, call.state, call.structured) == (True, "failed", {"exit": 2})


def test_the_todo_list_says_what_is_worked_on() -> None:
    todos = [
        {"content": "Read", "status": "completed", "priority": "low"},
        {"content": "Write", "status": "in_progress", "priority": "low"},
    ]
    assert folded(event("todo.updated", todos=todos)).todo == "Write (1/2)"


def test_switches_and_titles_are_shown() -> None:
    view = folded(
        event("session.created", title="New", location={"directory": "/w"}, projectID="prj_1"),
        event("agent.switched", messageID="msg_1", agent="plan"),
        event("model.switched", messageID="msg_2", model={"providerID": "p", "id": "m"}),
        event("session.described", title="Mine"),
        event("moved", location={"directory": "/v"}),
    )

    assert (view.agent, view.model, view.title, view.directory) == ("plan", "p/m", "Mine", "/v")


def test_the_server_says_why_a_session_rests() -> None:
    view = folded(*prompt("msg_1", "Hi"))
    view.settle({"state": "resting", "code": "over-budget", "reason": "It is over its budget."})
    assert (view.state, view.reason) == ("ready", "It is over its budget.")

    view.settle({"state": "running", "code": "running", "reason": "It works."})
    assert (view.state, view.reason) == ("working", "")


def test_a_rest_says_why_unless_all_is_done() -> None:
    view = folded(*prompt("msg_1", "Hi"), event("execution.released", reason="parked"))
    assert view.state == "working"

    detail = "The budget of $1 is used up."
    folded(event("execution.released", reason="over-budget", detail=detail), view=view)
    assert (view.state, view.reason) == ("ready", detail)

    folded(event("execution.released", reason="idle"), view=view)
    assert view.reason == ""


def test_events_of_a_newer_server_do_no_harm() -> None:
    view = folded(event("unheard.of", x=1), event("text.ended", assistantMessageID="msg_x"))

    assert texts(view) == ["An event of the type text.ended cannot be shown."]


def test_a_retry_is_said_once_and_the_answer_follows() -> None:
    retried = event("retried", attempt=1, error={"message": "Overloaded", "isRetryable": True})
    view = folded(retried, retried, text_ended("Yes"))

    assert texts(view) == ["Attempt 1 failed, and another follows: Overloaded", "Yes"]


def test_a_session_that_moves_or_goes_to_the_archive_says_so() -> None:
    place = {"location": {"directory": "/work/new"}}
    view = folded(event("moved", **place), event("moved", **place), event("session.archived"))
    folded(event("session.unarchived"), view=view)

    assert [entry.text for entry in view.entries if isinstance(entry, NoticeEntry)] == [
        "The session works in /work/new now.",
        "The session is in the archive. /unarchive brings it back, /new begins another.",
        "The session is back from the archive.",
    ]
