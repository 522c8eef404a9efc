"""A bare Debian with its own systemd, on this machine's network; needs root, debootstrap and systemd-nspawn."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from typing import Final

from patience import PATIENCE_S, wait_until
from serving import children_of, name_of

__all__ = ["DebianMachine"]

ROOTS: Final = "/etc/roots_of_tests.pem"
ENVIRONMENT: Final = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_CERT": ROOTS,
}


class DebianMachine:
    """Made and booted; stopped on leaving the context.

    Parameters
    ----------
    folder : Path
        For its root file system, about 1.5 GB, and the log of its console.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        subprocess.run(
            ["debootstrap", "--variant=minbase", "--include=systemd-sysv,dbus", "bookworm", self.root],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        roots = ssl.get_default_verify_paths().cafile
        if roots is not None:
            (self.root / ROOTS[1:]).write_bytes(Path(roots).read_bytes())
        with (folder / "console.log").open("w") as console:
            # It registers with no manager, so this machine need not run systemd.
            command = ["systemd-nspawn", "--register=no", "--keep-unit", "--resolv-conf=copy-host", "--boot"]
            self._process = subprocess.Popen(
                [*command, f"--directory={self.root}", "--machine=bare-debian"],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
            )
        wait_until(self._is_booted)

    def _is_booted(self) -> bool:
        assert self._process.poll() is None, (self.root.parent / "console.log").read_text()
        has_init = bool(children_of(self._process.pid))
        return has_init and self._entered("systemctl is-active default.target").returncode == 0

    @property
    def init(self) -> int:
        """Its first process, by this machine's number."""
        return children_of(self._process.pid)[0]

    def process(self, name: str) -> int:
        """The number here of a service's main process."""
        (found,) = [pid for pid in children_of(self.init) if name_of(pid) == name]
        return found

    def run(self, script: str, folder: str = "/root") -> str:
        """Run a script as root in a shell that ends with the first error; returns what it writes."""
        done = self._entered(f"cd {folder}\n{script}")
        assert done.returncode == 0, f"{script}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def _entered(self, script: str) -> subprocess.CompletedProcess[str]:
        namespaces = ("--mount", "--uts", "--ipc", "--pid", "--cgroup", "--root", "--wd")
        variables = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
        shell = ["env", "--ignore-environment", *variables, "sh", "-exc", script]
        return subprocess.run(
            ["nsenter", "--target", str(self.init), *namespaces, *shell],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def __enter__(self) -> DebianMachine:
        return self

    def __exit__(self, *_: object) -> None:
        self._entered("systemctl poweroff")
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
