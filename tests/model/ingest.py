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


def _interrupt(s: State, setting: Setting) -> Step:
    """What is open has to be settled by somebody; what has not begun is dropped at once."""
    if s.owner == NOBODY and not s.attempt:
        if not moving(s):
            return "the interrupt finds nothing active", s._replace(interrupter="done")
        dropped = s._replace(stirring=False, asked=False, owed=False, interrupter="done")
        return "ingest appends the interrupt, and nothing is open", written(dropped, setting)
    asked = s._replace(interrupted=True, stirring=False, asked=False, interrupter="appended")
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
