"""A new run by its forms, posted without script: what is offered, and what is refused at once."""

import html
import os

import httpx

from app.clock import SystemClock
from app.ledger.servers import remember_server
from tests.web.new_run.desk import PromptDesk, chat, reviewed, text_of
from tests.web.test_actions import VIEW_TOKEN, somebody

HOSTILE = '<img src=x onerror=alert(1)> & "co"'


async def refused(browser: httpx.AsyncClient, desk: PromptDesk, **fields: str | list[str]) -> str:
    answer = await browser.post("/new", data=dict(desk.form(**fields)))
    assert answer.status_code == 422, answer.headers
    return html.unescape(answer.text)


async def test_folders_below_the_roots_are_offered_with_their_partitions(
    desk: PromptDesk, browser: httpx.AsyncClient
) -> None:
    desk.write("deep/er/B2_code.jsonl", [chat("a", "b")])
    desk.write("bad/two words.jsonl", [chat("a", "b")])
    desk.write("p.jsonl", [chat("a", "b")], below=desk.outside)
    (desk.prompts / "way-out").symlink_to(desk.outside)
    shown = await text_of(browser, "/new")

    assert f'href="/new?prompts={desk.prompts}/night"' in shown
    assert f"{desk.prompts}/deep/er</a><small>1 partition" in shown
    assert 'the partition name "two words" is not usable' in shown
    assert f'href="/new?prompts={desk.prompts}/bad"' not in shown
    assert "way-out" not in shown
    assert str(desk.outside) not in shown

    desk.door.settings = desk.settings(prompts_roots="")
    assert "export LONGWATCH_PROMPTS_ROOTS=" in await text_of(browser, "/new")


async def test_who_may_only_look_is_told_so_and_sees_no_folder(desk: PromptDesk) -> None:
    async with somebody(desk.home, desk.door, VIEW_TOKEN) as viewer:
        for query in ("", f"?prompts={desk.prompts / 'night'}"):
            answer = await viewer.get(f"/new{query}")
            assert answer.status_code == 403
            assert "Only operators may start runs" in answer.text
            assert "night" not in answer.text


async def test_names_of_folders_are_text_and_lead_to_their_forms(
    desk: PromptDesk, browser: httpx.AsyncClient
) -> None:  # sec-01
    desk.write(f"{HOSTILE}/B1_chat.jsonl", [chat("a", "b")])
    (desk.prompts / os.fsdecode(b"\xff\xfe")).mkdir()
    desk.write(os.fsdecode(b"\xff\xfe/p.jsonl"), [chat("a", "b")])
    raw = (await browser.get("/new")).text
    assert "<img" not in raw
    assert "its name is no UTF-8" in raw

    form = await browser.get("/new", params={"prompts": str(desk.prompts / HOSTILE)})
    assert form.status_code == 200
    assert "<img" not in form.text
    assert 'name="B1_chat:class"' in form.text


async def test_no_folder_outside_the_roots_is_looked_into(
    desk: PromptDesk, browser: httpx.AsyncClient
) -> None:  # sec-05
    desk.write("p.jsonl", [chat("a", "b")], below=desk.outside)
    (desk.prompts / "way-out").symlink_to(desk.outside)
    (desk.prompts / "loop").symlink_to(desk.prompts / "loop")
    below = str(desk.prompts)
    places = ("/etc", f"{below}/../outside", f"{below}/way-out", f"{below}/loop", "x", "/\0", "")

    for place in places:
        answer = await browser.get("/new", params={"prompts": place})
        assert (answer.status_code, "does not lie under" in answer.text) == (422, True), place
        for name in ("prompts_dir", "output_dir"):
            await refused(browser, desk, **{name: place})
        answer = await browser.post("/new", data={"spec": desk.spec(prompts_dir=place)})
        assert answer.status_code == 422, place


async def test_a_prompt_file_that_is_a_link_out_is_not_read(
    desk: PromptDesk, browser: httpx.AsyncClient
) -> None:  # sec-05
    secret = desk.write("secret", ["root:x:0:0"], below=desk.outside)
    (desk.prompts / "night" / "B2_link.jsonl").symlink_to(secret)
    form = desk.form(partition=["B1_chat", "B2_link"], **{"B2_link:class": "long"})
    shown = await text_of(browser, await reviewed(browser, form))

    assert "a link out of the folders that LONGWATCH_PROMPTS_ROOTS allows" in shown
    assert "root:x" not in shown
    assert "Start</button>" not in shown


async def test_only_allowed_servers_are_asked(
    desk: PromptDesk, browser: httpx.AsyncClient
) -> None:  # sec-06
    for url in ("http://169.254.169.254", "file:///etc/passwd", "http://127.0.0.1:22", HOSTILE):
        shown = await refused(browser, desk, server_urls=[url])
        assert 'id="server_urls-wrong"' in shown
        pasted = await browser.post("/new", data={"spec": desk.spec(server_urls=[url])})
        assert pasted.status_code == 422
        if url.startswith("http"):
            told = html.unescape(pasted.text)
            assert f"set LONGWATCH_SERVER_URLS={desk.server_url},{url}" in told

    used = "http://127.0.0.1:9"
    remember_server(desk.home.ledger, used, "{}", SystemClock().now())
    await reviewed(browser, {"spec": desk.spec(server_urls=[used])})  # a run has used it before
    folder = {"prompts": str(desk.prompts / "night")}
    assert f'value="{used}"' in (await browser.get("/new", params=folder)).text


async def test_everything_wrong_stands_at_its_field_and_values_are_kept(
    desk: PromptDesk, browser: httpx.AsyncClient
) -> None:
    wrong = {
        "short_concurrency": "many",
        "top_p": "2",
        "deadline": "25:00",
        "output_dir": "/etc/out",
        "B1_chat:token_budget": "lots",
        "name": "",
    }
    shown = await refused(browser, desk, **wrong)
    for name, value in wrong.items():
        assert f'id="{name}-wrong"' in shown
        assert f'name="{name}" value="{value}"' in shown
    assert "6 things are to be mended" in shown
    assert '"many" is not a whole number from 1 to 10,000' in shown
    assert "no partition is chosen" in await refused(browser, desk, partition=[])


async def test_a_pasted_spec_is_refused_with_lines_and_kept(
    desk: PromptDesk, browser: httpx.AsyncClient
) -> None:
    text = desk.spec(name=7, colour="<b>red</b>")
    answer = await browser.post("/new", data={"spec": text})
    shown = html.unescape(answer.text)
    assert answer.status_code == 422
    assert "<b>red" not in answer.text
    assert "line 2: [run].name: 7 is not a text with something in it" in shown
    assert "line 6: [run].colour is not known here" in shown
    assert text in shown
    broken = await browser.post("/new", data={"spec": "[run\n"})
    assert "not valid TOML" in broken.text
