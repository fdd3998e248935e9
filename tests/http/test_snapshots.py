"""TGI's recorded responses have our field sets: what a client reads in them it finds in ours, and nothing is new.

The recordings went through client libraries that add nulls of their own, so a null in them may be missing from ours.
"""

import json

import pytest

from client import chat_body
from schemas import SNAPSHOTS, needs_data

pytestmark = needs_data

# What OpenAI's API has today and LoRAX's has, and TGI's had not.
ADDED = {".usage.prompt_tokens_details", ".usage.completion_tokens_details", ".details.prompt_tokens"}


def recordings():
    if not SNAPSHOTS.exists():
        return []
    return sorted(p for p in SNAPSHOTS.rglob("*.json") if json.loads(p.read_text()) not in ([], {}))


def kind(recorded, streamed):
    """Which request of ours a recorded value answers."""
    if "generated_text" in recorded:
        return "generate"
    if recorded["object"] == "text_completion":
        return "completion chunk" if streamed else "completion"
    return "usage" if recorded["choices"] == [] else recorded["object"]


def has_tools(recorded):
    return any((c.get("message") or c.get("delta") or {}).get("tool_calls")
               for c in recorded.get("choices", []))


@pytest.fixture(scope="module")
def ours(api):
    """One answer of ours of each kind."""
    chat = chat_body("What is tgi?", max_tokens=5, stream_options={"include_usage": True})
    chunks = api.chunks("/v1/chat/completions", chat)
    return {
        "generate": api.generate("Once upon", max_new_tokens=5, details=True,
                                 decoder_input_details=True, top_n_tokens=2),
        "chat.completion": api.chat("What is tgi?", max_tokens=5),
        "chat.completion.chunk": chunks[1],
        "usage": chunks[-1],
        "completion": api.complete("Once", max_tokens=5),
        "completion chunk": api.chunks("/v1/completions", {"prompt": "Once", "max_tokens": 5})[-1],
    }


def differences(recorded, ours, path=""):
    """Paths that are in the one and not in the other."""
    if isinstance(recorded, list) and isinstance(ours, list):
        return differences(recorded[0], ours[0], path + "[]") if recorded and ours else []
    if recorded is None or ours is None:
        return []
    if not (isinstance(recorded, dict) and isinstance(ours, dict)):
        same = type(recorded) is type(ours) or {type(recorded), type(ours)} == {int, float}
        return [] if same else [f"{path}: recorded {recorded!r}, ours {ours!r}"]
    found = [f"{path}.{k}: recorded, not in ours" for k, v in recorded.items() if v is not None and k not in ours]
    found += [f"{path}.{k}: in ours, not recorded" for k, v in ours.items()
              if k not in recorded and f"{path}.{k}" not in ADDED and v is not None]
    for key in recorded.keys() & ours.keys():
        found += differences(recorded[key], ours[key], f"{path}.{key}")
    return found


def alike(recorded, ours):
    """Drops from ours what the recorded request did not ask for."""
    ours = json.loads(json.dumps(ours))
    details = recorded.get("details")
    if details and not details.get("top_tokens"):
        ours["details"].pop("top_tokens", None)
    return ours


@pytest.mark.parametrize("path", recordings(), ids=lambda p: p.stem)
def test_a_recorded_response_has_our_fields(ours, path):
    recorded = json.loads(path.read_text())
    streamed = isinstance(recorded, list)
    for one in recorded if streamed else [recorded]:
        if has_tools(one):
            continue  # calls have OpenAI's shape here, see test_tools.py
        assert differences(one, alike(one, ours[kind(one, streamed)])) == []
