"""Steps of ingest: admit or ask for an interrupt, then wake; a refused wake is tried again."""

from collections.abc import Iterator

from tests.model.state import NO_TOKEN, NOBODY, Setting, State, moving, woken, written

Step = tuple[str, State]


def steps(s: State, setting: Setting) -> Iterator[Step]:
    """What ingest may do next, for each prompt and for the interrupt."""
    for prompt, at in enumerate(s.prompts):
        if at == "todo":
            admitted = s._replace(pending=(*s.pending, prompt), stirring=True, asked=True)
            yield f"ingest appends {prompt}", _at(written(admitted, setting), prompt, "appended")
        yield from _waking(s, setting, prompt, at)
    if s.interrupter == "todo":
        yield _interrupt(s, setting)
    elif s.interrupter == "appended":
        yield from _attend(s, setting)
    if s.person == "todo" and s.ask == "pending":
        yield _answer(s, setting)
    elif s.person != "todo":
        yield from _roused(s, setting)


def _answer(s: State, setting: Setting) -> Step:
    """A person's word: it stirs what waits for it, or stops it. After an interrupt it is too late."""
    if setting.asks == "decline":
        declined = s._replace(ask="closed", interrupted=True, stirring=False, asked=False)
        done = declined._replace(person="done", interrupter="appended")
        return "the person declines", written(done, setting)
    stirs = not (s.interrupted and setting.answer_respects_interrupt)
    granted = s._replace(ask="granted", person="appended")
    stirred = granted._replace(stirring=s.stirring or stirs, asked=s.asked or not s.interrupted)
    return "the person permits", written(stirred, setting)


def _roused(s: State, setting: Setting) -> Iterator[Step]:
    """Wake for an answer, as for a prompt."""
    if s.person not in {"appended", "refused"}:
        return
    done = s._replace(person="done")
    if not setting.answer_wakes or not moving(s):
        yield "ingest need not wake for the answer", done
    elif s.wake == NO_TOKEN:
        yield "ingest wakes for the answer", woken(done) or done
    elif s.person == "appended":
        yield "ingest is refused for the answer", s._replace(person="refused")
    if s.person == "refused" and not setting.patient:
        yield "ingest gives up on the answer", done
    if s.crashes and "ingest" in setting.mortal:
        yield "ingest dies before it wakes for the answer", done._replace(crashes=s.crashes - 1)


def _interrupt(s: State, setting: Setting) -> Step:
    """What is open has to be settled by somebody; what has not begun is dropped at once."""
    if s.owner == NOBODY and not s.attempt:
        if not moving(s):
            return "the interrupt finds nothing active", s._replace(interrupter="done")
        dropped = s._replace(stirring=False, asked=False, owed=False, interrupter="done")
        return "ingest appends the interrupt, and nothing is open", written(dropped, setting)
    asked = s._replace(interrupted=True, stirring=False, asked=False, interrupter="appended")
    if s.ask == "pending":
        asked = asked._replace(ask="closed", person="done")
    return "ingest appends the interrupt", written(asked, setting)


def _attend(s: State, setting: Setting) -> Iterator[Step]:
    """See that somebody honours the interrupt, and wake no more than once for it."""
    done = s._replace(interrupter="done")
    if not s.interrupted:
        yield "ingest sees the interrupt honoured", done
    elif s.wake == NO_TOKEN:
        yield "ingest wakes for the interrupt", woken(done) or done
    else:
        yield "ingest is refused for the interrupt", done
    if s.crashes and "ingest" in setting.mortal:
        yield "ingest dies before it wakes for the interrupt", done._replace(crashes=s.crashes - 1)


def _waking(s: State, setting: Setting, prompt: int, at: str) -> Iterator[Step]:
    if at not in {"appended", "refused"}:
        return
    if at == "refused" and not moving(s):
        yield f"ingest sees {prompt} move", _at(s, prompt, "done")
    elif s.wake == NO_TOKEN:
        yield f"ingest wakes for {prompt}", _at(woken(s) or s, prompt, "done")
    elif at == "appended":
        told = "refused" if setting.retry else "done"
        yield f"ingest is refused for {prompt}", _at(s, prompt, told)
    if at == "refused" and not setting.patient:
        yield f"ingest gives up on {prompt}", _at(s, prompt, "done")
    if s.crashes and "ingest" in setting.mortal:
        dead = _at(s, prompt, "done")._replace(crashes=s.crashes - 1)
        yield f"ingest dies before it wakes for {prompt}", dead


def _at(s: State, prompt: int, at: str) -> State:
    return s._replace(prompts=(*s.prompts[:prompt], at, *s.prompts[prompt + 1 :]))
