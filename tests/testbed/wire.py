"""What goes over a connection between a worker and a server, and the priority of the processes at its ends.

A worker asks with one byte. A transfer is one or more messages, each with its length in front. After an upload the
server answers with two times: how long the gradient lay at the server, and for how much of that the lock was held.
"""

import contextlib
import os
import pathlib
import socket
import struct
import threading

REQUEST = b"?"
TENSOR_ACKNOWLEDGEMENT = b"."
HEADER = struct.Struct("<Q")
ACKNOWLEDGEMENT = struct.Struct("<dd")
START = struct.Struct("<d")
REAL_TIME_PRIORITY = 10
PORT = 5000


def receive_exactly(connection: socket.socket, buffer: memoryview) -> None:
    """Fill the buffer, in few system calls; EOFError when the other end has gone."""
    received = 0
    while received < len(buffer):
        count = connection.recv_into(buffer[received:], 0, socket.MSG_WAITALL)
        if not count:
            raise EOFError
        received += count


def send_messages(connection: socket.socket, data: memoryview, lengths: list[int], *, wait: bool) -> None:
    """Send data as messages of these lengths; wait for an acknowledgement of each if asked to."""
    offset = 0
    answer = memoryview(bytearray(1))
    for length in lengths:
        connection.sendall(HEADER.pack(length), socket.MSG_MORE)
        connection.sendall(data[offset : offset + length])
        offset += length
        if wait:
            receive_exactly(connection, answer)


def receive_messages(connection: socket.socket, data: memoryview, lengths: list[int], *, answer: bool) -> None:
    """Receive messages of these lengths one after another; acknowledge each if asked to."""
    offset = 0
    header = memoryview(bytearray(HEADER.size))
    for _ in lengths:
        receive_exactly(connection, header)
        (length,) = HEADER.unpack(header)
        receive_exactly(connection, data[offset : offset + length])
        offset += length
        if answer:
            connection.sendall(TENSOR_ACKNOWLEDGEMENT)


def prepare_socket(connection: socket.socket, congestion_control: str) -> None:
    """No delay of small segments, and this congestion control."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())


def prepare_process(*, real_time: bool) -> None:
    """Run before everything else on the machine where that is allowed, and keep threads' stacks small."""
    threading.stack_size(256 * 1024)
    if real_time:
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REAL_TIME_PRIORITY))


def tcp_counters() -> dict[str, int]:
    """Counters of TCP in this process's network namespace since it was made: those that tell of losses."""
    wanted = {
        "RetransSegs",
        "OutSegs",
        "TCPTimeouts",
        "TCPLossProbes",
        "TCPFastRetrans",
        "TCPSlowStartRetrans",
        "TCPLostRetransmit",
        "TCPSpuriousRtxHostQueues",
        "TCPRcvCollapsed",
        "TCPZeroWindowDrop",
        "TCPToZeroWindowAdv",
        "TCPDSACKRecv",
    }
    found: dict[str, int] = {}
    for path in ("/proc/net/snmp", "/proc/net/netstat"):
        lines = pathlib.Path(path).read_text().splitlines()
        for names, values in zip(lines[::2], lines[1::2]):
            found |= {n: int(v) for n, v in zip(names.split(), values.split()) if n in wanted}
    return found
