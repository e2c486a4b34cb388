"""Steps of ingest: admit or ask for an interrupt, then wake; a refused wake is tried again."""

from collections.abc import Iterator

from tests.model.state import NO_TOKEN, NOBODY, Setting, State, after_commit, is_moving, with_wake

Step = tuple[str, State]


def steps(s: State, setting: Setting) -> Iterator[Step]:
    """What ingest may do next, for each prompt and for the interrupt."""
    for prompt, at in enumerate(s.prompts):
        if at == "todo" and s.owner != NOBODY and setting.earlier_owner_counts:
            yield f"ingest sees an owner before {prompt}", _at(s, prompt, "todo, owned")
        if at in {"todo", "todo, owned"}:
            admitted = s._replace(
                pending=(*s.pending, prompt), work_requested=True, work_expected=True
            )
            appended = _at(after_commit(admitted, setting), prompt, at.replace("todo", "appended"))
            yield f"ingest appends {prompt}", appended
        yield from _wake_for_prompt(s, setting, prompt, at)
    if s.interrupter == "todo":
        yield _interrupt(s, setting)
    elif s.interrupter == "appended":
        yield from _attend(s, setting)
    if s.person == "todo" and s.ask == "pending":
        yield _answer(s, setting)
    elif s.person != "todo":
        yield from _wake_for_answer(s, setting)


def _answer(s: State, setting: Setting) -> Step:
    """A person's answer requests work or stops the session. After an interrupt it requests nothing."""
    if setting.asks == "decline":
        declined = s._replace(
            ask="closed", interrupted=True, work_requested=False, work_expected=False
        )
        done = declined._replace(person="done", interrupter="appended")
        return "the person declines", after_commit(done, setting)
    requests_work = not (s.interrupted and setting.answer_respects_interrupt)
    granted = s._replace(ask="granted", person="appended")
    answered = granted._replace(
        work_requested=s.work_requested or requests_work,
        work_expected=s.work_expected or not s.interrupted,
    )
    return "the person permits", after_commit(answered, setting)


def _wake_for_answer(s: State, setting: Setting) -> Iterator[Step]:
    """Wake for an answer, as for a prompt."""
    if s.person not in {"appended", "refused"}:
        return
    done = s._replace(person="done")
    if not setting.answer_wakes or not is_moving(s):
        yield "ingest need not wake for the answer", done
    elif s.wake == NO_TOKEN:
        yield "ingest wakes for the answer", with_wake(done) or done
    elif s.person == "appended":
        yield "ingest is refused for the answer", s._replace(person="refused")
    elif s.owner != NOBODY and setting.owner_counts:
        yield "ingest leaves the answer to the owner", done
    if s.person == "refused" and not setting.patient:
        yield "ingest gives up on the answer", done
    if s.crashes and "ingest" in setting.mortal:
        yield "ingest dies before it wakes for the answer", done._replace(crashes=s.crashes - 1)


def _interrupt(s: State, setting: Setting) -> Step:
    """Open work needs a runner that settles it. Work that has not begun is dropped at once."""
    if s.owner == NOBODY and not s.attempt:
        if not is_moving(s):
            return "the interrupt finds nothing active", s._replace(interrupter="done")
        dropped = s._replace(
            work_requested=False, work_expected=False, owed=False, interrupter="done"
        )
        return "ingest appends the interrupt, and nothing is open", after_commit(dropped, setting)
    stopping = s._replace(
        interrupted=True, work_requested=False, work_expected=False, interrupter="appended"
    )
    if s.ask == "pending":
        stopping = stopping._replace(ask="closed", person="done")
    return "ingest appends the interrupt", after_commit(stopping, setting)


def _attend(s: State, setting: Setting) -> Iterator[Step]:
    """Make sure that a runner honours the interrupt, with one wake at most."""
    done = s._replace(interrupter="done")
    if not s.interrupted:
        yield "ingest sees the interrupt honoured", done
    elif s.wake == NO_TOKEN:
        yield "ingest wakes for the interrupt", with_wake(done) or done
    else:
        yield "ingest is refused for the interrupt", done
    if s.crashes and "ingest" in setting.mortal:
        yield "ingest dies before it wakes for the interrupt", done._replace(crashes=s.crashes - 1)


def _wake_for_prompt(s: State, setting: Setting, prompt: int, at: str) -> Iterator[Step]:
    """Wake. A refused wake is repeated until the session has moved or a runner owns it.

    The owner may be dead: its wake is the one that refused, and comes again.
    """
    if at not in {"appended", "appended, owned", "refused"}:
        return
    if at == "refused" and not is_moving(s):
        yield f"ingest sees {prompt} move", _at(s, prompt, "done")
    elif s.wake == NO_TOKEN:
        yield f"ingest wakes for {prompt}", _at(with_wake(s) or s, prompt, "done")
    elif at == "refused" and s.owner != NOBODY and setting.owner_counts:
        yield f"ingest leaves {prompt} to the owner", _at(s, prompt, "done")
    elif at != "refused":
        outcome = "refused" if setting.retry and at == "appended" else "done"
        yield f"ingest is refused for {prompt}", _at(s, prompt, outcome)
    if at == "refused" and not setting.patient:
        yield f"ingest gives up on {prompt}", _at(s, prompt, "done")
    if s.crashes and "ingest" in setting.mortal:
        dead = _at(s, prompt, "done")._replace(crashes=s.crashes - 1)
        yield f"ingest dies before it wakes for {prompt}", dead


def _at(s: State, prompt: int, at: str) -> State:
    return s._replace(prompts=(*s.prompts[:prompt], at, *s.prompts[prompt + 1 :]))
