"""The one safe way to ask a real server for its vocabulary, since no answer states its size.

An id outside the vocabulary ends the server when it is sent to /generate; to /detokenize it is
harmless and has no text, while every known id has some once special ones are not left out.
"""

import json

from tests.contract.exchange import open_client
from tests.sglang.real_server import RealServer

VOCABULARY = 512


def test_detokenize_has_text_for_exactly_the_ids_of_the_vocabulary(real_server: RealServer) -> None:
    ids = list(range(VOCABULARY + 8))
    body = {"tokens": [[token] for token in ids], "skip_special_tokens": False}

    with open_client(real_server.url) as client:
        texts = client.post("/detokenize", json=body).json()["text"]

    assert [token for token, text in zip(ids, texts, strict=True) if text] == ids[:VOCABULARY]


def test_no_answer_about_the_server_states_the_vocabulary(real_server: RealServer) -> None:
    with open_client(real_server.url) as client:
        for path in ("/server_info", "/model_info", "/v1/models", "/v1/loads"):
            assert "vocab_size" not in json.dumps(client.get(path).json())
