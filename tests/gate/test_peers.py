"""Whose socket a connection comes from, asked of the kernel about real ones."""

import errno
import logging
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.gate.asking import Address
from app.gate.peers import LookUp, Peers
from app.gate.socket_diag import Found, look_up
from app.gate.socket_tables import owner_of
from tests.gate.people import STRANGER_UID, needs_root, stranger
from tests.waiting import wait_until

TABLE = Path("/proc/self/net/tcp")
pytestmark = pytest.mark.skipif(not TABLE.exists(), reason="only Linux tells who owns a socket")


def silent(_own: Address, _other: Address) -> Found | None:
    """Answer as a kernel does that knows no such question."""
    raise OSError(errno.EPROTONOSUPPORT, "not supported")


def has_no_module(_own: Address, _other: Address) -> Found | None:
    """Answer as a kernel does whose module for TCP is missing: as if there were no such socket."""
    return None


def lines_with(words: str) -> list[str]:
    return [line for line in TABLE.read_text().splitlines() if words in line]


WAYS = [pytest.param(look_up, id="asked"), pytest.param(silent, id="read")]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def ends(accepted: socket.socket) -> tuple[Address, Address]:
    """Return client and server of a connection as uvicorn tells them."""
    return accepted.getpeername()[:2], accepted.getsockname()[:2]


@pytest.mark.parametrize("ask", [*WAYS, pytest.param(has_no_module, id="no-module")])
def test_the_own_user_is_known(listener: socket.socket, ask: LookUp) -> None:
    with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
        assert Peers(ask=ask).is_own(*ends(accepted))
        assert Peers(STRANGER_UID, ask=ask).is_own(*ends(accepted)) is (os.geteuid() == 0)


@needs_root
@pytest.mark.parametrize("ask", WAYS)
def test_another_user_is_known(listener: socket.socket, ask: LookUp) -> None:
    with stranger(listener.getsockname()[1]), listener.accept()[0] as accepted:
        assert not Peers(ask=ask).is_own(*ends(accepted))
        assert Peers(STRANGER_UID, ask=ask).is_own(*ends(accepted))


@needs_root
@pytest.mark.parametrize("ask", WAYS)
async def test_a_socket_that_its_owner_closed_is_nobody_s(
    listener: socket.socket, ask: LookUp
) -> None:
    """The kernel calls it root's from then on: who sends and hangs up would be let in."""
    with stranger(listener.getsockname()[1]) as other, listener.accept()[0] as accepted:
        client, server = ends(accepted)
        other.close()
        end = f"0100007F:{client[1]:04X} 0100007F:{server[1]:04X} "
        # the stranger's for a moment yet: its line is root's once the kernel has closed it
        await wait_until(
            lambda: [line.split()[7] for line in lines_with(end)] == ["0"],
            "the closed socket to be root's in the table",
        )
        assert not Peers(ask=ask).is_own(client, server)


@needs_root
def test_the_next_user_of_a_port_inherits_nothing(listener: socket.socket) -> None:
    peers = Peers()
    with socket.create_connection(listener.getsockname()) as own, listener.accept()[0] as accepted:
        client, server = ends(accepted)
        assert peers.is_own(client, server)
        # a reset, so that the port is free at once
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with (
        stranger(server[1], own_port=client[1]) as other,
        listener.accept()[0] as accepted,
    ):
        assert other.address == client
        assert not peers.is_own(*ends(accepted))


def test_a_verdict_is_kept_for_the_connection_alone(listener: socket.socket) -> None:
    asked = []

    def ask(own: Address, other: Address) -> Found | None:
        asked.append(own)
        return look_up(own, other)

    peers = Peers(ask=ask)
    with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
        client, server = ends(accepted)
        assert peers.is_own(client, server)
        assert peers.is_own(client, server)
        assert len(asked) == 1
        same_port_later = (client[0], client[1])
        assert peers.is_own(same_port_later, server)
        assert len(asked) == 2


def test_another_connection_from_the_same_port_does_not_count(listener: socket.socket) -> None:
    """One port of a client may hold connections to several of our addresses at once."""
    with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
        client, server = ends(accepted)
        for ask in (look_up, silent):
            assert not Peers(ask=ask).is_own(client, ("127.0.0.2", server[1]))


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
@pytest.mark.parametrize("ask", WAYS)
def test_version_6_is_known(ask: LookUp) -> None:
    with (
        socket.create_server(("::1", 0), family=socket.AF_INET6) as listener,
        socket.create_connection(listener.getsockname()[:2]),
        listener.accept()[0] as accepted,
    ):
        assert Peers(ask=ask).is_own(*ends(accepted))


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
@pytest.mark.parametrize("ask", WAYS)
def test_version_4_by_a_socket_of_version_6_is_known(listener: socket.socket, ask: LookUp) -> None:
    with socket.socket(socket.AF_INET6) as client:
        client.connect(("::ffff:127.0.0.1", listener.getsockname()[1]))
        with listener.accept()[0] as accepted:
            assert Peers(ask=ask).is_own(*ends(accepted))


def test_an_address_of_elsewhere_is_nobody_of_ours() -> None:
    assert not Peers().is_own(("192.0.2.7", 4000), ("192.0.2.1", 80))
    assert not Peers().is_own(None, ("127.0.0.1", 80))
    assert not Peers().is_own(("127.0.0.1", 4000), None)


def test_where_the_kernel_does_not_tell_loopback_is_trusted_and_it_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    peers = Peers(ask=silent, tables=tmp_path / "nowhere")
    with caplog.at_level(logging.WARNING):
        assert peers.is_own(("127.0.0.1", 4000), ("127.0.0.1", 80))
        assert peers.is_own(("127.0.0.1", 4001), ("127.0.0.1", 80))
    assert caplog.text.count("every user of this machine") == 1
    assert "LONGWATCH_TOKEN" in caplog.text


def test_what_is_remembered_is_bounded(tmp_path: Path) -> None:
    peers = Peers(ask=silent, tables=tmp_path / "nowhere")
    for port in range(1, 1_500):
        peers.is_own(("127.0.0.1", port), ("127.0.0.1", 1))
    assert len(peers._kept) == 1_024


def test_the_table_of_a_system_without_version_6_is_enough(
    listener: socket.socket, tmp_path: Path
) -> None:
    with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
        (tmp_path / "tcp").symlink_to(TABLE)
        assert owner_of(*ends(accepted), tmp_path) == os.geteuid()
