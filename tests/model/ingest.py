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
        yield from _waking(s, setting, prompt, at, str(prompt))
    if s.interrupter == "todo":
        yield _interrupt(s, setting)
    yield from _waking(s, setting, NOBODY, s.interrupter, "the interrupt")


def _interrupt(s: State, setting: Setting) -> Step:
    """A session that nobody drains and that waits for no tool has nothing to interrupt."""
    if s.owner == NOBODY and not s.attempt:
        return "the interrupt finds nothing active", s._replace(interrupter="done")
    asked = s._replace(interrupted=True, stirring=False, asked=False, interrupter="appended")
    return "ingest appends the interrupt", written(asked, setting)


def _waking(s: State, setting: Setting, prompt: int, at: str, what: str) -> Iterator[Step]:
    if at not in {"appended", "refused"}:
        return
    if s.wake == NO_TOKEN:
        yield f"ingest wakes for {what}", _at(woken(s) or s, prompt, "done")
    elif at == "appended":
        told = "refused" if setting.retry else "done"
        yield f"ingest is refused for {what}", _at(s, prompt, told)
    elif not moving(s):
        yield f"ingest sees {what} move", _at(s, prompt, "done")
    if at == "refused" and not setting.patient:
        yield f"ingest gives up on {what}", _at(s, prompt, "done")
    if s.crashes and "ingest" in setting.mortal:
        dead = _at(s, prompt, "done")._replace(crashes=s.crashes - 1)
        yield f"ingest dies before it wakes for {what}", dead


def _at(s: State, prompt: int, at: str) -> State:
    if prompt == NOBODY:
        return s._replace(interrupter=at)
    return s._replace(prompts=(*s.prompts[:prompt], at, *s.prompts[prompt + 1 :]))
