"""Isolation of a host's process: no server variables, no files of the server, a bounded number of processes."""

from __future__ import annotations

import ctypes
import os
import resource
import struct
from collections.abc import Collection, Iterable
from glob import glob
from pathlib import Path
from typing import Final

from nodewise.processes.spawning import allowed_environment

__all__ = ["environment", "limit_processes", "restrict_files"]

ALLOWED: Final = (
    *("NO_COLOR", "PYTHONHOME", "PYTHONUTF8", "NUMBA_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
    *("COVERAGE_PROCESS_START", "COVERAGE_FILE", "COVERAGE_RCFILE"),
)
"""Variables that a host gets besides those of every child process. None of them is a secret."""
_OWN: Final = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "GRPC_ENABLE_FORK_SUPPORT": "0",
    "GRPC_VERBOSITY": "NONE",
}
"""One thread for linear algebra, as matrices are small; and no gRPC in processes that a plugin forks."""
MOST_PROCESSES: Final = 512
"""Threads and processes that a host may have beside those that run at its start."""


def environment(extra: Collection[str] = ()) -> dict[str, str]:
    """The variables of a host, from those of this process; ``extra`` are allowed as well."""
    own = {name: value for name, value in _OWN.items() if name not in extra}
    locale = [name for name in os.environ if name.startswith("LC_")]
    return allowed_environment((*ALLOWED, *extra, *locale), **own)


def limit_processes() -> None:
    """Limit the processes that this one may start. The kernel counts by user, and exempts root."""
    try:  # of all users: at least its own
        tasks = int(Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[2])
    except FileNotFoundError:  # only processes are visible, as with ProcSubset=pid of systemd
        tasks = len(glob("/proc/[0-9]*/task/*"))  # noqa: PTH207  # it skips processes that end meanwhile
    bounds = [each for each in resource.getrlimit(resource.RLIMIT_NPROC) if each != resource.RLIM_INFINITY]
    most = min([tasks + MOST_PROCESSES, *bounds])
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


# --- Landlock (linux/landlock.h): numbers of system calls are the same on all architectures

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_READ_FILE, _READ_DIR, _EXECUTE, _ALL_OF_1 = 1 << 2, 1 << 3, 1 << 0, (1 << 13) - 1
_NO_NEW_PRIVILEGES: Final = 38
READABLE: Final = (
    *("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/sys", "/dev"),
    *("/proc/self", "/proc/cpuinfo", "/proc/filesystems", "/proc/meminfo", "/proc/stat", "/proc/sys"),
    *("/etc/alternatives", "/etc/ca-certificates", "/etc/fonts", "/etc/group", "/etc/hosts", "/etc/ld.so.cache"),
    *("/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/passwd", "/etc/pki", "/etc/resolv.conf"),
    "/etc/ssl",
)
"""Paths that programs need; neither ``/proc`` of other processes, with their variables, nor ``/etc`` as a whole."""


def restrict_files(readable: Iterable[str], writable: Iterable[str]) -> bool:
    """Restrict the files that this process and its children may open; False = the kernel has no Landlock.

    Devices and paths below ``writable`` may be written. Modules may be imported from ``readable``.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION) < 1:
        return False
    attributes = ctypes.create_string_buffer(struct.pack("<Q", _ALL_OF_1), 8)
    rules = libc.syscall(_CREATE, attributes, ctypes.c_size_t(8), 0)
    if rules < 0:
        return False
    try:
        for path in {*READABLE, *readable}:
            _allow(libc, rules, path, _READ_FILE | _READ_DIR | _EXECUTE | ((1 << 1) if path == "/dev" else 0))
        for path in set(writable):
            _allow(libc, rules, path, _ALL_OF_1)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            return False
        return bool(libc.syscall(_RESTRICT, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: str, access: int) -> None:
    """Allow access below a path; a missing path is skipped."""
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not Path(path).is_dir():
            access &= _READ_FILE | _EXECUTE | (1 << 1)
        rule = ctypes.create_string_buffer(struct.pack("<Qi", access, parent), 12)
        libc.syscall(_ADD, rules, _PATH_BENEATH, rule, 0)
    finally:
        os.close(parent)
