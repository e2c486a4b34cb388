"""Behaviours of the catalogue that are not built, built in part, or decided otherwise, and why.

A behaviour that tests do show as the catalogue says it is cited in those tests and does not belong here.
"""

from collections.abc import Mapping

_NO_HOOKS = "a commit is one message of the log; nothing of ours runs inside it (sections 4, 7)"
_NO_LISTENERS = (
    "writers have no listeners: everyone else reads the log after the commit (section 7)"
)


NOT_BUILT: Mapping[str, str] = {}

IN_PART: Mapping[str, str] = {}

DECIDED: Mapping[str, str] = {
    "B-18": "a promotion is one commit of the log, and no projection can roll it back (sections 4, 7)",
    "B-19": "nothing observes inside a commit: projections read the log afterwards (section 7)",
    "C-10": "nobody waits inside a drain: waiting is reading, and its end cancels nothing (section 5)",
    "C-17": "who drains is in the log, not in a process, and outlives every shutdown (section 5)",
    "C-18": "a follow-up is a new drain from a loop; there is no stack to grow (section 6)",
    "D-40": "a quirk: a step ends once, and `fairlead verify` refuses a second end",
    "E-08": "a quirk: one tool crashes, only that call fails (section 9)",
    "F-35": "the turn that is being prepared takes the switch, because the log refuses its commit",
    "F-36": "the turn that is being prepared takes the switch, because the log refuses its commit",
    "F-44": "a move clears the epoch, because the destination has sources of its own",
    "G-11": "a conversation that does not fit is shortened for its summary, so a smaller model goes on",
    "H-05": "the log alone decides about a commit; projections follow it (sections 4, 7)",
    "H-06": "a projection that fails is repeated and never undoes a commit (section 7)",
    "H-07": _NO_HOOKS,
    "H-08": _NO_LISTENERS,
    "H-09": _NO_LISTENERS,
    "H-10": _NO_LISTENERS,
    "H-11": "a live fragment names its session, whose location readers know",
    "H-28": "the owner's generation is in the log and fences every write (section 5)",
    "H-32": "a tail gets the commits themselves; a commit it missed is read from the log",
    "H-42": "a writer that was cut off repeats the same commit and learns whether it was stored",
    "N-10": "work that begins after a stage commits the revert first: no turn runs on files that are gone",
    "N-11": "a stage stops a running drain first, and changes files when nothing runs (docs/adr/0047)",
    "P-10": "a fragment leaves at once, because the first word counts more than the number of messages",
    "P-11": "the cursor of events is their sequence, which clients may compare and count",
    "Q-14": _NO_LISTENERS,
}
