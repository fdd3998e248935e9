"""Vertex AI's route and variables, and SageMaker's."""

import json
import socket

import pytest

from client import Api, chat_body

PROMPT = "Once upon a time"
GREEDY = {"max_new_tokens": 8, "do_sample": False}


def predict(api, *instances, **more):
    return api.ok("/vertex", {"instances": list(instances), **more})["predictions"]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_instances_are_prompts_and_chats(api):
    wanted = [api.generate(PROMPT, max_new_tokens=8)["generated_text"],
              api.chat("What is tgi?", temperature=0, max_tokens=8)["choices"][0]["message"]["content"]]
    chat = chat_body("What is tgi?", temperature=0, max_tokens=8)
    assert predict(api, {"inputs": PROMPT, "parameters": GREEDY}, chat) == wanted
    assert predict(api, chat, {"inputs": PROMPT, "parameters": GREEDY}) == wanted[::-1]


def test_parameters_are_those_of_generate(api):
    wanted = api.generate(PROMPT, max_new_tokens=8, temperature=0.7, seed=3)["generated_text"]
    assert predict(api, {"inputs": PROMPT, "parameters": {"max_new_tokens": 8, "temperature": 0.7, "seed": 3}}) == [wanted]
    assert predict(api, {"inputs": PROMPT}, parameters={"max_new_tokens": 8, "temperature": 0.7, "seed": 3}) == [wanted]
    own = {"inputs": PROMPT, "parameters": {"max_new_tokens": 2, "do_sample": False}}
    assert predict(api, own, parameters=GREEDY) == [api.generate(PROMPT, max_new_tokens=2)["generated_text"]]
    sampled = api.generate(PROMPT, max_new_tokens=8, do_sample=True, seed=3)["generated_text"]
    assert predict(api, {"inputs": PROMPT, "parameters": {"max_new_tokens": 8, "seed": 3}}) == [sampled], "as TGI, it samples"


BAD = [
    {}, {"instances": []}, {"instances": "a"}, {"instances": [{}]}, {"instances": ["a"]}, {"instances": [{"inputs": ""}]},
    {"instances": [{"inputs": 3}]}, {"instances": [{"inputs": "a", "parameters": {"top_p": 2}}]}, {"instances": [{"messages": []}]},
    {"instances": [{"inputs": "a", "stream": True}]}, {"instances": [chat_body("a", stream=True)]},
    {"instances": [chat_body("a", n=2)]}, {"instances": [{"inputs": "a"}] * 5}, {"instances": [{"inputs": "a"}], "nope": 1},
    {"instances": [{"inputs": "a", "nope": 1}]}]


@pytest.mark.parametrize("body", BAD, ids=[json.dumps(b)[:60] for b in BAD])
def test_what_is_wrong_is_422(api, body):
    assert api.post("/vertex", body).status_code == 422


def test_vertex_says_where_it_asks(serve):
    port = free_port()
    served = serve(http=None, env={"AIP_HTTP_PORT": str(port), "AIP_PREDICT_ROUTE": "/predict", "AIP_HEALTH_ROUTE": "/alive",
                                   "AIP_MODE": "PREDICTION"})
    assert served.port == port and served.host == "0.0.0.0"
    api = Api(f"http://127.0.0.1:{port}")
    assert api.get("/alive").status_code == 200
    wanted = predict(api, {"inputs": PROMPT, "parameters": GREEDY})
    assert api.ok("/predict", {"instances": [{"inputs": PROMPT, "parameters": GREEDY}]})["predictions"] == wanted
    assert api.post("/alive", {}).status_code in (404, 405)


def test_sagemaker_names_the_model(serve):
    served = serve(model=None, env={"HF_MODEL_ID": "demo"})
    assert served.model_name == "demo"
    assert Api(served.url).get("/ping").status_code == 200
