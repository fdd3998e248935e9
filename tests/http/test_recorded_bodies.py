"""What clients send that scripts/test_http does not install, recorded from them: langchain-openai, litellm, instructor, llama-index and
openai-agents (which ask for an older `openai` than the one tested with, or bring many megabytes), and what Open WebUI's source says that
reaches a server. recorded_agents.json has what Claude Code and Codex sent, their texts shortened; both want more context than the demo
model has.

Nothing that they send by default may be refused; what asks for something that is not there is, by its name.
"""

import json
import pathlib

import pytest

from gateway import model_variant

RECORDED = json.loads((pathlib.Path(__file__).parent / "recorded_bodies.json").read_text())
AGENTS = json.loads((pathlib.Path(__file__).parent / "recorded_agents.json").read_text())


def ids(refused):
    return [pytest.param(each, id=each["client"]) for each in RECORDED if ("refused" in each) == refused]


def text_of(choice):
    """What was said, in words or in calls."""
    if "text" in choice:
        return choice["text"]
    message = choice.get("message", choice.get("delta"))
    return message.get("content") or "".join(call["function"]["arguments"] for call in message.get("tool_calls", []))


@pytest.mark.parametrize("recorded", ids(refused=False))
def test_what_clients_send_is_answered(api, recorded):
    body = recorded["body"]
    if not body.get("stream"):
        answer = api.ok(recorded["path"], body)
        assert len(answer["choices"]) == body.get("n", 1)
        for choice in answer["choices"]:
            assert isinstance(text_of(choice), str)
            assert choice["finish_reason"] in ("stop", "length", "tool_calls")
            assert (choice["logprobs"] is not None) == bool(body.get("logprobs"))
        assert answer["usage"]["completion_tokens"] > 0
        return
    chunks = api.chunks(recorded["path"], body)
    reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]]
    assert len(reasons) == 1
    assert "".join(text_of(choice) or "" for chunk in chunks for choice in chunk["choices"])
    if body.get("stream_options", {}).get("include_usage"):
        assert any(chunk.get("usage") for chunk in chunks)


@pytest.mark.parametrize("recorded", ids(refused=True))
def test_what_is_not_there_is_refused_by_name(api, recorded):
    response = api.post(recorded["path"], recorded["body"])
    assert response.status_code == 422, response.text
    assert recorded["refused"] in response.json()["error"]["message"]


@pytest.fixture(scope="module")
def roomy_folder(tmp_path_factory):
    return model_variant(tmp_path_factory.mktemp("roomy"), 16384, [1, 2])


@pytest.mark.parametrize("recorded", [pytest.param(each, id=each["client"]) for each in AGENTS])
def test_what_agents_send_is_answered(pair, roomy_folder, recorded):
    api = pair(model=str(roomy_folder)).api
    short = {"max_tokens": 20} if "max_tokens" in recorded["body"] else {"max_output_tokens": 20}
    answer = api.post(recorded["path"], recorded["body"] | short, headers=recorded["headers"])
    assert answer.status_code == 200, answer.text
    events = [line.removeprefix("event: ") for line in answer.text.splitlines() if line.startswith("event: ")]
    assert events[-1] in ("message_stop", "response.completed", "response.incomplete"), events
