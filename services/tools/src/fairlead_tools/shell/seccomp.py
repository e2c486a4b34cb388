"""The system calls that a sandboxed command may not make, as a filter for the kernel.

The filter is classic BPF, so no library is needed. A forbidden call fails with EPERM and the command
goes on. The list names calls that builds and scripts do not need and that attacks on a kernel do:
debuggers, mounts, keys, kernel modules, namespaces, io_uring. Everything else is allowed.
"""

import errno
import platform
import struct
from typing import Final

# linux/filter.h, linux/seccomp.h
LOAD: Final = 0x20
JUMP_EQUAL: Final = 0x15
JUMP_AT_LEAST: Final = 0x35
JUMP_ANY_BIT: Final = 0x45
RETURN: Final = 0x06
ALLOW: Final = 0x7FFF0000
REFUSE: Final = 0x00050000 | errno.EPERM
# The C library then falls back to `clone`, whose flags a filter can see.
ABSENT: Final = 0x00050000 | errno.ENOSYS
NUMBER_AT, ARCHITECTURE_AT, FIRST_AT, SECOND_AT = 0, 4, 16, 24

# CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
NAMESPACES: Final = 0x7E020080
# TIOCSTI and TIOCLINUX put characters into the input of a terminal.
TERMINAL_INPUT: Final = (0x5412, 0x541C)
# Numbers of the other calling convention of x86_64 begin here.
X32: Final = 0x40000000

# io_uring_setup/enter/register, open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr
_EVERYWHERE: Final = (425, 426, 427, 428, 429, 430, 431, 432, 433, 442)
_CLONE3: Final = 435
# Per machine: its audit number, clone, ioctl, and the forbidden calls in this order: ptrace, mount,
# umount2, pivot_root, swapon, swapoff, reboot, init_module, delete_module, finit_module, add_key,
# request_key, keyctl, kexec_load, unshare, setns, perf_event_open, process_vm_readv,
# process_vm_writev, kcmp, bpf, userfaultfd, name_to_handle_at, open_by_handle_at, acct, quotactl,
# kexec_file_load.
_MACHINES: Final[dict[str, tuple[int, int, int, tuple[int, ...]]]] = {
    "x86_64": (
        *(0xC000003E, 56, 16),
        (
            *(101, 165, 166, 155, 167, 168, 169, 175, 176, 313, 248, 249, 250, 246),
            *(272, 308, 298, 310, 311, 312, 321, 323, 303, 304, 163, 179, 320),
        ),
    ),
    "aarch64": (
        *(0xC00000B7, 220, 29),
        (
            *(117, 40, 39, 41, 224, 225, 142, 105, 106, 273, 217, 218, 219, 104),
            *(97, 268, 241, 270, 271, 272, 280, 282, 264, 265, 89, 60, 294),
        ),
    ),
}


def seccomp_filter(machine: str = platform.machine()) -> bytes | None:
    """The filter program for a machine; None for a machine whose numbers are not known."""
    if machine not in _MACHINES:
        return None
    architecture, clone, ioctl, forbidden = _MACHINES[machine]
    program = [
        _instruction(LOAD, ARCHITECTURE_AT),
        *_unless(JUMP_EQUAL, architecture, _instruction(RETURN, REFUSE)),
        _instruction(LOAD, NUMBER_AT),
        *_when(JUMP_AT_LEAST, X32, REFUSE),
        *_when(JUMP_EQUAL, _CLONE3, ABSENT),
    ]
    for number in (*forbidden, *_EVERYWHERE):
        program += _when(JUMP_EQUAL, number, REFUSE)
    flags = (_instruction(LOAD, FIRST_AT), *_when(JUMP_ANY_BIT, NAMESPACES, REFUSE))
    requests = (_instruction(LOAD, SECOND_AT), *_when(JUMP_EQUAL, TERMINAL_INPUT[0], REFUSE))
    requests += tuple(_when(JUMP_EQUAL, TERMINAL_INPUT[1], REFUSE))
    for number, checks in ((clone, flags), (ioctl, requests)):
        program += _if(JUMP_EQUAL, number, (*checks, _instruction(LOAD, NUMBER_AT)))
    return b"".join((*program, _instruction(RETURN, ALLOW)))


def _instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _if(jump: int, value: int, then: tuple[bytes, ...]) -> list[bytes]:
    return [_instruction(jump, value, 0, len(then)), *then]


def _when(jump: int, value: int, answer: int) -> list[bytes]:
    return _if(jump, value, (_instruction(RETURN, answer),))


def _unless(jump: int, value: int, then: bytes) -> list[bytes]:
    return [_instruction(jump, value, 1, 0), then]
