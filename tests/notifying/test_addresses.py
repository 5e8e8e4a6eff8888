"""Which addresses a webhook may go to (request forgery: sec-06 turned outward)."""

import pytest

from app.errors import InputError
from app.notifying.addresses import Allowed, allowed_of, refusal
from app.settings import load_settings

NOBODY = Allowed()


@pytest.mark.parametrize(
    "address",
    ["93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946", "64:ff9b::808:808"],
)
def test_the_open_internet_may_be_reached(address: str) -> None:
    assert refusal("hooks.example", address, NOBODY) is None


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "a loopback"),
        ("127.9.9.9", "a loopback"),
        ("::1", "a loopback"),
        ("10.1.2.3", "a private"),
        ("172.16.0.1", "a private"),
        ("192.168.1.1", "a private"),
        ("100.64.0.1", "a private"),
        ("fd00::1", "a private"),
        ("fec0::1", "a private"),
        ("169.254.169.254", "a link-local"),
        ("fe80::1", "a link-local"),
        ("224.0.0.1", "a multicast"),
        ("ff02::1", "a multicast"),
        ("0.0.0.0", "an unspecified"),  # noqa: S104 - refused, which is what is tested
        ("::", "an unspecified"),
        ("0.1.2.3", "a reserved"),
        ("240.0.0.1", "a reserved"),
        ("255.255.255.255", "a reserved"),
        ("::ffff:127.0.0.1", "a loopback"),
        ("::ffff:169.254.169.254", "a link-local"),
        ("64:ff9b::7f00:1", "a loopback"),
        ("64:ff9b::a9fe:a9fe", "a link-local"),
        ("2002:7f00:1::", "a loopback"),
        ("2002:a00:1::", "a private"),
        ("::127.0.0.1", "a reserved"),
    ],
)
def test_what_is_not_of_the_open_internet_is_refused(address: str, kind: str) -> None:
    assert refusal("hooks.example", address, NOBODY) == f"{address} is {kind} address"


def test_a_named_host_opens_loopback_and_private_addresses_only() -> None:
    chat = allowed_of("chat.internal")
    assert refusal("chat.internal", "10.0.0.1", chat) is None
    assert refusal("CHAT.internal", "127.0.0.1", chat) is None
    for other in ("x.chat.internal", "chat.internal.evil.example", "internal"):
        assert refusal(other, "10.0.0.1", chat) is not None
    for never in ("169.254.169.254", "0.0.0.0", "224.0.0.1"):  # noqa: S104
        assert refusal("chat.internal", never, chat) is not None


def test_a_named_network_opens_exactly_that() -> None:
    some = allowed_of("10.1.2.0/24, 169.254.169.254, fd00::/16")
    assert refusal("any.example", "10.1.2.255", some) is None
    assert refusal("any.example", "169.254.169.254", some) is None
    assert refusal("any.example", "::ffff:10.1.2.3", some) is None
    assert refusal("any.example", "fd00::7", some) is None
    assert refusal("any.example", "10.1.3.0", some) is not None
    assert refusal("any.example", "169.254.169.253", some) is not None


@pytest.mark.parametrize(
    "url",
    [
        "ftp://hooks.example/a-secret",
        "file:///etc/a-secret",
        "https:///a-secret",
        "hooks.example/a-secret",
        "https://user:a-secret@hooks.example/",
        "https://hooks.example/a-secret#there",
        "https://hooks.example:99999/a-secret",
        "https://hooks.example:a-secret/",
        "https://hooks.example:0/a-secret",
        "https://hooks.example/a secret/a-secret",
        "https://hooks.example/\r\nHost: evil/a-secret",
        "https://höoks.example/a-secret",
        "https://[::1/a-secret",
    ],
)
def test_an_address_that_is_none_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InputError, match="LONGWATCH_NOTIFY_URL") as told:
        load_settings(notify_url=url)
    assert "a-secret" not in str(told.value)
    assert "a-secret" not in repr(told.value)


@pytest.mark.parametrize("given", ["10.0.0.1/8", "a b", "*.internal", "http://chat", "chat:8080"])
def test_an_allowance_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(InputError, match="LONGWATCH_NOTIFY_ALLOW"):
        load_settings(notify_allow=given)


def test_a_setting_that_is_refused_is_told_in_words_of_ours() -> None:
    with pytest.raises(InputError) as told:
        load_settings(notify_url="chat")
    assert told.value.message.startswith("LONGWATCH_NOTIFY_URL: it is no address")


def test_blank_targets_are_none_and_none_shows_in_a_repr() -> None:
    settings = load_settings(notify_url=" ", notify_command="")
    assert settings.notify_url is None
    assert settings.notify_command is None
    settings = load_settings(notify_url="https://h.example/a-secret", notify_command="t a-secret")
    assert "a-secret" not in repr(settings)


def test_a_command_that_is_none_is_refused_and_not_shown() -> None:
    for given in ("'a-secret", "''  'a-secret"):
        with pytest.raises(InputError, match="LONGWATCH_NOTIFY_COMMAND") as told:
            load_settings(notify_command=given)
        assert "a-secret" not in str(told.value)
