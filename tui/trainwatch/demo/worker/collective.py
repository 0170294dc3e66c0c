"""All-reduce over TCP for the demo's workers: a star around rank 0.

Every rank sends its numbers to rank 0, which adds them in the order of the ranks and sends the sum back, so that all
ranks hold the same bits. When a connection breaks, rank 0 tells the others whose it was before all of them give up.
"""
from __future__ import annotations

import array
import select
import socket
import struct
import time

HEADER = struct.Struct("<BI")
"""Kind of the frame, and how many doubles follow (JOIN and LOST: whose rank it is, and nothing follows)."""
JOIN, NUMBERS, LOST = 1, 2, 3
LINGER = 0.3
"""Seconds that rank 0 waits for more broken connections once it has seen one, so that it names all of them."""


class PeerLostError(ConnectionError):
    """Ranks whose connection was closed in the middle of the job."""

    def __init__(self, ranks: list[int]) -> None:
        self.ranks = ranks
        names = ", ".join("rank %d" % rank for rank in ranks)
        super().__init__("connection closed by peer (%s)" % names)


class Group:
    """All ranks of one job, connected. Every rank makes one and calls the same methods in the same order."""

    def __init__(self, rank: int, world_size: int, address: str, port: int, timeout: float = 60.0) -> None:
        self.rank = rank
        self.world_size = world_size
        self._peers = {}  # type: dict[int, socket.socket]
        if world_size == 1:
            return
        if rank == 0:
            self._accept(address, port, timeout)
        else:
            self._peers[0] = self._connect(address, port, timeout)

    def all_reduce(self, values: array.array[float]) -> array.array[float]:
        """The sum over all ranks, element by element. Raises PeerLostError."""
        if self.rank != 0:
            hub = self._peers[0]
            self._send(0, hub, values)
            return self._receive(0, hub)
        total = array.array("d", values)
        try:
            for peer, connection in sorted(self._peers.items()):
                theirs = self._receive(peer, connection)
                for i, value in enumerate(theirs):
                    total[i] += value
            for peer, connection in self._peers.items():
                self._send(peer, connection, total)
        except PeerLostError as error:
            raise self._give_up(error.ranks[0]) from None
        return total

    def barrier(self) -> None:
        """Wait until every rank has come here. Raises PeerLostError."""
        self.all_reduce(array.array("d", [0.0]))

    def _accept(self, address: str, port: int, timeout: float) -> None:
        with socket.socket() as server:
            # whoever chose the port may still hold it bound, unheard, so that nobody else takes it meanwhile
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            server.bind((address, port))
            server.listen(self.world_size)
            server.settimeout(timeout)
            while len(self._peers) < self.world_size - 1:
                connection, _ = server.accept()
                try:
                    _, peer = HEADER.unpack(self._exactly(-1, connection, HEADER.size))
                except PeerLostError:
                    continue  # somebody who only knocked
                self._peers[peer] = self._tuned(connection)

    def _connect(self, address: str, port: int, timeout: float) -> socket.socket:
        deadline = time.monotonic() + timeout
        while True:
            try:
                connection = socket.create_connection((address, port), timeout=timeout)
                break
            except ConnectionRefusedError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        connection.sendall(HEADER.pack(JOIN, self.rank))
        return self._tuned(connection)

    @staticmethod
    def _tuned(connection: socket.socket) -> socket.socket:
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _send(self, peer: int, connection: socket.socket, values: array.array[float]) -> None:
        try:
            connection.sendall(HEADER.pack(NUMBERS, len(values)) + values.tobytes())
        except OSError:
            raise PeerLostError([peer]) from None

    def _receive(self, peer: int, connection: socket.socket) -> array.array[float]:
        kind, number = HEADER.unpack(self._exactly(peer, connection, HEADER.size))
        if kind == LOST:
            raise PeerLostError([number])
        values = array.array("d")
        values.frombytes(self._exactly(peer, connection, number * values.itemsize))
        return values

    @staticmethod
    def _exactly(peer: int, connection: socket.socket, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                more = connection.recv(size - len(data))
            except OSError:
                more = b""
            if not more:
                raise PeerLostError([peer])
            data += more
        return bytes(data)

    def _give_up(self, first: int) -> PeerLostError:
        """Tell every rank that is left who was lost, and return the error that names all of them."""
        deadline = time.monotonic() + LINGER
        lost = {first}
        while True:
            others = {connection: peer for peer, connection in self._peers.items() if peer not in lost}
            left = deadline - time.monotonic()
            ready = select.select(list(others), [], [], max(left, 0))[0] if others else []
            lost.update(others[connection] for connection in ready if self._is_closed(connection))
            if left <= 0:
                break
            if ready or not others:
                time.sleep(0.02)  # numbers of a living rank also make its connection ready
        for peer, connection in self._peers.items():
            if peer not in lost:
                try:
                    connection.sendall(HEADER.pack(LOST, first))
                except OSError:
                    lost.add(peer)
        return PeerLostError(sorted(lost))

    @staticmethod
    def _is_closed(connection: socket.socket) -> bool:
        try:
            return not connection.recv(1, socket.MSG_PEEK)
        except OSError:
            return True
