"""A network of namespaces: servers behind rate-limited links, workers on one host or each on its own."""

import array
import contextlib
import fcntl
import json
import os
import secrets
import shutil
import socket
import struct
import subprocess
import sys

from job import Job

# linux/sockios.h and linux/ethtool.h: setting segmentation offloads needs no ethtool.
_SIOCETHTOOL = 0x8946
_OFFLOADS = (0x1F, 0x24, 0x2C)  # TSO, GSO, GRO


class Network:
    """Namespaces and links of one run. Use as a context manager: leaving it removes everything.

    Parameters
    ----------
    job
        Says what the links are like and how many servers there are.
    workers
        Number of workers.

    Attributes
    ----------
    servers
        Pairs of namespace and address, one for each server.
    hosts
        For each host of workers its namespace and the numbers of its workers.
    """

    def __init__(self, job: Job, workers: int) -> None:
        self._job = job
        self._name = f"nw{os.getpid()}x{secrets.token_hex(2)}"
        self._separate = job.worker_hosts or job.worker_link_bytes_per_s is not None
        self._namespaces: list[str] = []
        self._limited: list[tuple[str, str]] = []
        self._hub = f"{self._name}hub"
        self.servers = [(f"{self._name}s{k}", self._server_address(k)) for k in range(job.parameter_servers)]
        together = [(self._hub, list(range(workers)))]
        self.hosts = [(f"{self._name}w{w}", [w]) for w in range(workers)] if self._separate else together

    def __enter__(self) -> "Network":
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove all namespaces, and with them all links."""
        for namespace in self._namespaces:
            with contextlib.suppress(subprocess.CalledProcessError):
                command("ip", "netns", "del", namespace)
        self._namespaces.clear()

    def drops(self) -> dict[str, int]:
        """Packets that each token bucket has dropped so far: ``up`` towards the servers, ``down`` away from them."""
        counts = {"up": 0, "down": 0}
        for namespace, device in self._limited:
            shown = command("ip", "netns", "exec", namespace, "tc", "-s", "-j", "qdisc", "show", "dev", device)
            root = next(qdisc for qdisc in json.loads(shown) if qdisc["kind"] == "tbf")
            counts["up" if namespace == self._hub else "down"] += root["drops"]
        return counts

    def _server_address(self, server: int) -> str:
        return f"10.77.0.{server + 1}" if self._separate else f"10.77.{server}.1"

    def _build(self) -> None:
        self._add_namespace(self._hub)
        if self._separate:
            self._in(self._hub, "ip", "link", "add", "bridge", "type", "bridge")
            self._in(self._hub, "ip", "link", "set", "bridge", "up")
        for k, (namespace, address) in enumerate(self.servers):
            self._add_namespace(namespace)
            self._add_link(namespace, address, f"s{k}", None if self._separate else f"10.77.{k}.2")
            self._limit(namespace, "eth0", self._job.link_bytes_per_s)
            self._limit(self._hub, f"s{k}", self._job.link_bytes_per_s)
            self._limited += [(namespace, "eth0"), (self._hub, f"s{k}")]
        if self._separate:
            for namespace, (number,) in self.hosts:
                self._add_namespace(namespace)
                self._add_link(namespace, f"10.77.{1 + number // 250}.{1 + number % 250}", f"w{number}", None)
                if self._job.worker_link_bytes_per_s is not None:
                    self._limit(namespace, "eth0", self._job.worker_link_bytes_per_s)
                    self._limit(self._hub, f"w{number}", self._job.worker_link_bytes_per_s)

    def _add_namespace(self, namespace: str) -> None:
        self._namespaces.append(namespace)
        command("ip", "netns", "add", namespace)
        self._in(namespace, "ip", "link", "set", "lo", "up")
        # What one run learnt of a path must not reach into the next.
        self._in(namespace, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")
        idle = f"net.ipv4.tcp_slow_start_after_idle={int(self._job.slow_start_after_idle)}"
        self._in(namespace, "sysctl", "-qw", idle)

    def _add_link(self, namespace: str, address: str, port: str, hub_address: str | None) -> None:
        """Join a namespace to the hub; the hub's end has an address of its own or is a port of the bridge."""
        self._in(
            namespace, "ip", "link", "add", "name", "eth0", "type", "veth", "peer", "name", port, "netns", self._hub
        )
        self._in(namespace, "ip", "address", "add", f"{address}/{24 if hub_address else 16}", "dev", "eth0")
        if hub_address:
            self._in(self._hub, "ip", "address", "add", f"{hub_address}/24", "dev", port)
        else:
            self._in(self._hub, "ip", "link", "set", port, "master", "bridge")
        for where, device in ((namespace, "eth0"), (self._hub, port)):
            if not self._job.segmentation_offload:
                self._in(where, sys.executable, "-S", __file__, "--whole-frames", device)
            self._in(where, "ip", "link", "set", device, "up")

    def _limit(self, namespace: str, device: str, bytes_per_s: float) -> None:
        """Put a token bucket in front of what leaves through a device."""
        burst_bytes = max(3000, round(bytes_per_s * self._job.burst_ms / 1000))
        bucket = ["tbf", "rate", f"{round(bytes_per_s * 8)}bit", "burst", str(burst_bytes)]
        bucket += ["latency", f"{self._job.queue_ms}ms"]
        self._in(namespace, "tc", "qdisc", "add", "dev", device, "root", "handle", "1:", *bucket)
        if self._job.queue_packets is not None:
            child = ["pfifo", "limit", str(self._job.queue_packets)]
            self._in(namespace, "tc", "qdisc", "add", "dev", device, "parent", "1:1", *child)

    @staticmethod
    def _in(namespace: str, *words: str) -> None:
        command("ip", "netns", "exec", namespace, *words)


def command(*words: str) -> str:
    """Run a command to its end and return what it printed; CalledProcessError, with its complaint, when it fails."""
    # A group of its own: an interrupt from the keyboard is for the process that cleans up.
    done = subprocess.run(words, capture_output=True, text=True, check=False, process_group=0)
    if done.returncode:
        complaint = subprocess.CalledProcessError(done.returncode, words, done.stdout, done.stderr)
        complaint.add_note(done.stderr.strip())
        raise complaint
    return done.stdout


def why_impossible(congestion_controls: set[str]) -> str | None:
    """What this machine lacks for the testbed, or None: tried, not guessed."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "the testbed needs root on Linux"
    for tool in ("ip", "tc", "sysctl"):
        if shutil.which(tool) is None:
            return f"the testbed needs {tool}"
    for name in congestion_controls:
        try:
            with socket.socket() as probe:
                probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError:
            return f"the testbed needs TCP's congestion control {name}"
    try:
        with Network(Job(job="probe", workers=(1,), parameter_bytes=1, link_bytes_per_s=1e6, compute_s=0), 1):
            return None
    except subprocess.CalledProcessError as error:
        return f"the testbed cannot make its network: {error.stderr.strip() or error}"


def whole_frames(device: str) -> None:
    """Switch off every offload that lets a device carry segments larger than a frame."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for offload in _OFFLOADS:
            value = array.array("I", [offload, 0])
            address, _ = value.buffer_info()
            fcntl.ioctl(any_socket, _SIOCETHTOOL, struct.pack("16sP", device.encode(), address))


if __name__ == "__main__":
    whole_frames(sys.argv[-1])
