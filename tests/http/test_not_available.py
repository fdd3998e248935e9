"""Images: refused with a typed 422 that names the feature, until they land."""

from client import chat_body


def refused(response, *names):
    """The refusal, once it is sure that it is a 422 of the validation type that names one of the features."""
    assert response.status_code == 422, response.text
    body = response.json()
    message = body["error"]["message"] if isinstance(body["error"], dict) else body["error"]
    assert any(name in message.lower() for name in names), message
    assert isinstance(body["error_type"], str)
    return body


def test_30_images_are_refused_by_name(api):
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content = [{"type": "text", "text": "what is this?"}, url]
    refused(api.post("/v1/chat/completions", chat_body(content, max_tokens=5)), "image")


def test_suffix_is_refused(api):
    body = {"prompt": "a", "suffix": "b", "max_tokens": 2}
    refused(api.post("/v1/completions", body), "suffix")
