"""The toy tokenizer and its two routes."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.simulator.tokenizer import (
    TemplateRefusedError,
    decode,
    encode,
    encode_chat,
    render_chat,
    token_bytes,
)
from app.simulator.words import FIRST_WORD_ID, lexicon
from tests.simulator.talk import Talk


@given(st.text())
def test_text_makes_a_round_trip_through_byte_ids(text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    ids = encode(text)
    assert decode(ids) == text
    assert all(3 <= token < FIRST_WORD_ID - 2 for token in ids)


def test_template_is_bos_and_role_lines_and_the_assistant_mark() -> None:
    assert encode_chat([{"role": "user", "content": "Hi"}]) == [1, *encode("user:Hi\nassistant:")]
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert render_chat([{"role": "user", "content": parts}]) == "user:ab\nassistant:"


@pytest.mark.parametrize("size", [512, 2048, 40_000])
def test_every_id_of_a_vocabulary_has_its_own_word(size: int) -> None:
    texts = lexicon(size).texts
    assert len(texts) == len(set(texts)) == size - FIRST_WORD_ID
    assert len(token_bytes(size)) == size


def test_strict_template_refuses_system_and_roles_that_do_not_alternate() -> None:
    user, system = {"role": "user", "content": "x"}, {"role": "system", "content": "x"}
    with pytest.raises(TemplateRefusedError, match="System role"):
        render_chat([system, user], strict=True)
    with pytest.raises(TemplateRefusedError, match="alternate"):
        render_chat([user, user], strict=True)
    assert render_chat([user], strict=True) == render_chat([user])


def test_tokenize_takes_prompt_or_messages_and_detokenize_gives_text_back(
    start: Callable[..., Talk],
) -> None:
    http = start().http
    plain = http.post("/tokenize", json={"prompt": "Hi", "add_special_tokens": False}).json()
    assert plain == {"tokens": encode("Hi"), "count": 2, "max_model_len": 32_768}
    with_bos = http.post("/v1/tokenize", json={"prompt": ["Hi", "a"]}).json()
    assert with_bos["tokens"] == [[1, *encode("Hi")], [1, *encode("a")]]
    messages = [{"role": "user", "content": "Hi"}]
    chat = http.post("/tokenize", json={"messages": messages}).json()
    assert chat["tokens"] == encode_chat(messages)
    assert http.post("/detokenize", json={"tokens": encode("Hi")}).json() == {"text": "Hi"}
    assert http.post("/v1/detokenize", json={"tokens": [[75], [2]]}).json() == {"text": ["H", ""]}
    assert http.post("/tokenize", json={}).status_code == 400


def test_tokenize_of_the_strict_template_answers_400_with_its_text(
    start: Callable[..., Talk],
) -> None:
    http = start(template="toy-strict").http
    users = [{"role": "user", "content": "a"}] * 2
    refused = http.post("/tokenize", json={"messages": users})
    assert refused.status_code == 400
    assert "alternate" in refused.json()["message"]
    assert http.post("/tokenize", json={"messages": users[:1]}).status_code == 200
