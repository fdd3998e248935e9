"""Tools, adapters and images: refused with a typed 422 that names the feature, until they land."""

import pytest

from client import chat_body

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}


def refused(response, *names):
    """The refusal, once it is sure that it is a 422 of the validation type that names one of the features."""
    assert response.status_code == 422, response.text
    body = response.json()
    message = body["error"]["message"] if isinstance(body["error"], dict) else body["error"]
    assert any(name in message.lower() for name in names), message
    assert isinstance(body["error_type"], str)
    return body


def test_20_response_format_and_tools(api):
    body = chat_body("hi", response_format={"type": "json_object"}, tools=[TOOL])
    refused(api.post("/v1/chat/completions", body), "tools", "response_format")


@pytest.mark.parametrize("stream", [False, True], ids=["21_whole", "22_streamed"])
@pytest.mark.parametrize("choice", [None, "auto", "required", "get_weather",
                                    {"type": "function", "function": {"name": "get_weather"}}], ids=str)
def test_21_22_23_24_tools(api, choice, stream):
    body = chat_body("hi", max_tokens=5, tools=[TOOL], stream=stream)
    if choice:
        body["tool_choice"] = choice
    refused(api.post("/v1/chat/completions", body), "tools")


def test_26_tool_messages_need_tools_no_more_than_the_template_does(api):
    """A history with tool calls is only text for the template; it is answered, or refused by name."""
    body = {"max_tokens": 5, "messages": [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "tool_calls": [{"id": "0", "type": "function", "function": {
            "name": "get_weather", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "0", "content": "sunny"}]}
    response = api.post("/v1/chat/completions", body)
    if response.status_code != 200:
        refused(response, "tool")


def test_28_an_unknown_adapter_is_refused(api):
    response = api.post("/generate", {"inputs": "a", "parameters": {"adapter_id": "x/y"}})
    assert response.status_code in (404, 422)
    assert "x/y" in response.text or "adapter" in response.text


def test_30_images_are_refused_by_name(api):
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content = [{"type": "text", "text": "what is this?"}, url]
    refused(api.post("/v1/chat/completions", chat_body(content, max_tokens=5)), "image")


def test_suffix_is_refused(api):
    body = {"prompt": "a", "suffix": "b", "max_tokens": 2}
    refused(api.post("/v1/completions", body), "suffix")
