# SPDX-License-Identifier: Apache-2.0
"""What of an exception's text leaves the process."""

from __future__ import annotations

import random
import time

import pytest

from client_support import FakeRecorder, run_python
from epochmeter import _redact


@pytest.mark.parametrize("text, told", [
    ("HF_TOKEN=abcdefgh1234 is not valid", "HF_TOKEN=*** is not valid"),
    ("{'api_key': 'k1', 'lr': 0.1}", "{'api_key': ***, 'lr': 0.1}"),
    ('{"password": "p w"}', '{"password": ***}'),
    ("login failed: password: geheim", "login failed: password: ***"),
    ("train.py --wandb-api-key 12ab --lr 3", "train.py --wandb-api-key *** --lr 3"),
    ("401 for https://me:pw@host/data?x=1", "401 for https://***@host/data?x=1"),
    ("GET https://host/a?access_key=AbC&n=2", "GET https://host/a?access_key=***&n=2"),
    ("Authorization: Bearer abc.def.ghi-123", "Authorization: Bearer ***"),
    ("bad key hf_" + "a" * 30 + "!", "bad key ***!"),
    ("AWS_SECRET_ACCESS_KEY=x/y+z", "AWS_SECRET_ACCESS_KEY=***"),
])  # fmt: skip
def test_secret_is_hidden_and_the_rest_stays(text: str, told: str) -> None:
    assert _redact.clean(text) == told


@pytest.mark.parametrize("text", [
    "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 139.80 GiB total)",
    "index 50257 is out of bounds: max_tokens=512, pad_token_id=0",
    "tokenizer: AutoTokenizer, unknown token: <pad>",
    "Expected all tensors on cuda:0, got cpu; see https://host/docs@v2/x",
    "KeyError: 'loss'",
])  # fmt: skip
def test_what_a_failure_needs_to_be_understood_stays(text: str) -> None:
    assert _redact.clean(text) == text


def test_home_folder_is_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/anna")
    text = "no '/home/anna/data/x.npz', '/home/anna' or /home/annabel/y"
    assert _redact.clean(text) == "no '~/data/x.npz', '~' or /home/annabel/y"
    monkeypatch.setenv("HOME", "/")
    assert _redact.clean("/data/x") == "/data/x"


def test_message_is_one_line() -> None:
    assert _redact.message(ValueError("boom at 5\n\n  second line\r\n")) == "boom at 5 / second line"
    assert _redact.message(ValueError("")) == ""


@pytest.mark.parametrize("unit", ["a", "token", "://", "--", "password", "token=", " ", "hf_"])
def test_long_text_takes_no_long_time(unit: str) -> None:
    began = time.process_time()
    _redact.clean(unit * (16000 // len(unit)))
    assert time.process_time() - began < 0.5


def test_secret_is_hidden_behind_any_text_and_in_time() -> None:
    words = [
        "token", "tokens", "password", "secret", "api_key", "access-key", "bearer ", "hf_", "eyJ",
        "://", "@", "--", "=", ":", " ", "'", '"', "{", "}", "&", "\n", "\x00", "\ud800", "é", "geheim",
        "a" * 40, "/home/anna", "1234567890",
    ]  # fmt: skip
    chance = random.Random(4)
    spent = 0.0
    for _ in range(400):
        text = "".join(chance.choices(words, k=chance.randrange(1, 120)))
        began = time.process_time()
        hidden = _redact.clean(text + " password=geheim7 ")
        spent += time.process_time() - began
        assert "geheim7" not in hidden, repr(text)
        _redact.message(ValueError(text)).encode("utf-8", "surrogatepass")
    assert spent < 2, "time in proportion to the text"


def test_message_and_traceback_leave_without_secrets(recorder: FakeRecorder) -> None:
    done = run_python(
        "import epochmeter, os\n"
        "scope = {}\n"
        "exec(compile('def f(w): raise ValueError(w)', '/home/anna/train.py', 'exec'), scope)\n"
        "for _ in epochmeter.steps([1], epoch=0):\n"
        "    scope['f']('x' * 1990 + ' password=geheim /home/anna/x')\n",
        recorder.path, HOME="/home/anna",
    )  # fmt: skip
    assert "geheim" in done.stderr, "what Python prints is the training's own"
    event = recorder.events("exception")[0]
    assert event["message"] == "x" * 1990 + " password="[:10]
    assert '"~/train.py"' in event["traceback"]
    assert not any(b"geheim" in d or b"/home/anna" in d for d in recorder.datagrams)


def test_exception_that_leaves_a_frameworks_loop_is_cleaned_too(client: FakeRecorder) -> None:
    from epochmeter import _state

    recorder = _state.current()
    assert recorder is not None
    recorder.train_begin("keras", "framework")
    recorder.train_end("failed", RuntimeError("secret=abc"))
    assert client.events("train_end")[0]["message"] == "secret=***"
