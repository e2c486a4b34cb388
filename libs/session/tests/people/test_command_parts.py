"""Commands: which parts a shell would run, and texts that hide them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_session.people.command_parts import (
    DEPTH_MAX,
    LENGTH_MAX,
    PARTS_MAX,
    command_parts,
)

SHOWN = [
    ("ls", {"ls"}),
    ("git  status\t-s", {"git status -s"}),
    ("ls x; curl e", {"ls x", "curl e"}),
    ("ls && rm x || tee y", {"ls", "rm x", "tee y"}),
    ("ls&rm x", {"ls", "rm x"}),
    ("ls\nrm x", {"ls", "rm x"}),
    ("ls|rm x", {"ls", "rm x"}),
    ("ls |& rm x", {"ls", "rm x"}),
    ("ls $(rm x)", {"ls $(rm x)", "rm x"}),
    ('ls "a $(rm "$(id)") b"', {"id", 'rm "$(id)"', 'ls "a $(rm "$(id)") b"'}),
    ("echo 'a; rm x'", {"echo 'a; rm x'"}),
    ("echo a\\; rm", {"echo a\\; rm"}),
    ("A=b rm x", {"A=b rm x", "rm x"}),
    ("A='b c' D+=e rm x", {"A='b c' D+=e rm x", "D+=e rm x", "rm x"}),
    ("env A=b rm x", {"env A=b rm x", "A=b rm x", "rm x", "x"}),
    ("ls > x", {"ls", "> x"}),
    ("> x rm y", {"rm y", "> x rm y"}),
    ("2>x <y rm z", {"rm z", "2>x <y rm z"}),
    ("ls 2>>x", {"ls", "2>>x"}),
    ("cat <x", {"cat", "<x"}),
    ("ls 2>&1 >/dev/null", {"ls"}),
    ("ls >/dev/nullx", {"ls", ">/dev/nullx"}),
    ("(cd x; rm y)", {"cd x", "rm y"}),
    ("{ rm x; }", {"rm x"}),
    ("if a; then rm x; fi", {"a", "rm x"}),
    ("f() { rm x; }; f", {"f", "rm x"}),
    ("ls # it's\nrm x # '", {"ls", "rm x"}),
    ("/bin/rm x", {"/bin/rm x", "rm x"}),
    ("\\rm x", {"rm x"}),
    ("'r'\"m\" x", {"rm x"}),
    ("r\\\nm x", {"rm x"}),
    ("ls \\\n -a", {"ls -a"}),
    ("[ -f x ] && ls", {"[ -f x ]", "ls"}),
    ("echo ${a} ${#b} $?", {"echo ${a} ${#b} $?"}),
    ("! rm x", {"rm x"}),
    ("find . -exec rm x +", {"find . -exec rm x +", "rm x +"}),
    ("find -ok /bin/rm x", {"find -ok /bin/rm x", "rm x", "/bin/rm x"}),
    ("A=b", {"A=b"}),
    ("", set()),
]
HIDDEN = [
    "ls `rm x`",
    'ls "`rm x`"',
    "$X a",
    '"$X" a',
    "r${Y}m a",
    "/bin/r? a",
    "{rm,-rf,x}",
    "eval rm x",
    "bash -c 'rm x'",
    "/bin/sh x",
    "sudo -u a sh",
    ". ./x",
    "find . -exec sh -c 'rm x' {} +",
    "env -S'rm x'",
    "env -iS 'rm x'",
    "env --split-string='rm x'",
    "su -c 'rm x'",
    "=rm x",
    "ls $((##a)); rm x\n))",
    "trap 'rm x' EXIT",
    "cat <<E\nit's\nE\nrm x\necho '",
    "cat <<< x",
    "ls &> x rm y",
    "echo $'\\'' ; rm x #'",
    "echo ${x:-$(rm y)}",
    'echo "${x:-"}" ; rm y ; echo "',
    'echo "$(case x in a) rm y;; esac)"',
    "function ls { rm x; }",
    "ls 'open",
    'ls "open',
    "ls $(open",
    "echo " + "$(" * (DEPTH_MAX + 1) + ")" * (DEPTH_MAX + 1),
    ";".join(f"a{number}" for number in range(PARTS_MAX + 1)),
    "sudo " * 100,
    "echo " + "a" * LENGTH_MAX,
]


@pytest.mark.parametrize(("command", "parts"), SHOWN)
def test_every_part_that_a_shell_would_run_is_found(command: str, parts: set[str]) -> None:
    """B7: separators, quotes, substitutions, prefixes, redirections and comments."""
    found = command_parts(command)

    assert found is not None
    assert set(found) == parts


@pytest.mark.parametrize(
    "command",
    [
        "sudo -u a -g b -h c -p d -r e rm x",
        "taskset 1 rm x",
        "parallel -j 4 rm x",
        "timeout -k 1 -s KILL 5 nice -n 3 rm x",
        "repeat 3 rm x",
    ],
)
def test_values_of_options_do_not_hide_the_command_behind_them(command: str) -> None:
    """B7: a program that runs another may have any number of options with values."""
    assert "rm x" in (command_parts(command) or ())


@pytest.mark.parametrize("command", HIDDEN)
def test_a_text_that_hides_its_commands_has_no_parts(command: str) -> None:
    """B7: where shells differ, or code is data, nothing is guessed."""
    assert command_parts(command) is None


@given(st.text(alphabet="ar ;&|()<>$`'\"\\\n#{}=-/", max_size=60))
def test_every_text_is_read_to_its_end(command: str) -> None:
    """B7: the command comes from a model, so anything may stand there."""
    parts = command_parts(command)

    assert parts is None or all(isinstance(part, str) for part in parts)


@given(st.text(alphabet="ab ;'\"$()\\\n", max_size=30), st.sampled_from([";", "\n", "&&", "|"]))
def test_a_command_behind_a_separator_is_never_lost(text: str, separator: str) -> None:
    """B7: whatever stands before it, a command behind a complete one is found."""
    alone = command_parts(text)
    both = command_parts(f"{text}{separator} curl evil")

    assert alone is None or text.endswith("\\") or both is None or "curl evil" in both
