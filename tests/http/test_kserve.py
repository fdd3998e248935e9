"""KServe's open inference protocol: by Triton's client for it, and as TGI's own clients ask."""

import json

import numpy
import pytest
import tritonclient.http as triton

from client import Api

PROMPT = "Once upon a time"
GREEDY = {"max_new_tokens": 8}


@pytest.fixture(scope="session")
def client(gateway):
    return triton.InferenceServerClient(f"{gateway.host}:{gateway.port}")


def tensor(texts, name="text_input", **more):
    return {"name": name, "shape": [len(texts)], "datatype": "BYTES", "data": texts, **more}


def infer(api, body, path="/v2/models/demo/infer"):
    return api.ok(path, {"parameters": GREEDY, **body})


def refused(api, body, status=422, path="/v2/models/demo/infer"):
    response = api.post(path, body)
    assert response.status_code == status, response.text
    assert set(response.json()) == {"error", "error_type"}
    return response.json()["error"]


def test_tritons_client(client, api):
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("demo")
    assert client.get_server_metadata()["extensions"] == ["health", "models", "metrics"]
    described = client.get_model_metadata("demo", "3")
    assert described["name"] == "demo" and described["versions"] == ["3"] and described["inputs"][0]["datatype"] == "BYTES"
    asked = triton.InferInput("text_input", [2], "BYTES")
    asked.set_data_from_numpy(numpy.array([PROMPT, "The"], dtype=object), binary_data=False)
    answer = client.infer("demo", [asked], outputs=[triton.InferRequestedOutput("text_output", binary_data=False)],
                          request_id="r1", parameters={**GREEDY})
    texts = [t.decode() if isinstance(t, bytes) else t for t in answer.as_numpy("text_output")]
    assert texts == [api.generate(p, max_new_tokens=8)["generated_text"] for p in (PROMPT, "The")]
    assert answer.get_response()["id"] == "r1"


def test_tgis_form_in_bytes(api):
    wanted = api.generate(PROMPT, max_new_tokens=8)["generated_text"]
    body = {"id": "7", "inputs": [{"name": "input0", "shape": [1], "datatype": "UINT8", "data": list(PROMPT.encode())}],
            "outputs": [{"name": "output0"}]}
    for path in ("/v2/models/demo/infer", "/v2/models/demo/versions/1/infer"):
        answer = infer(api, body, path)
        (output,) = answer["outputs"]
        assert bytes(output["data"]).decode() == wanted and output["shape"] == [1, len(output["data"])]
        assert answer["id"] == "7" and output["name"] == "output0" and output["datatype"] == "BYTES"


def test_several_inputs_and_their_parameters(api):
    answer = infer(api, {"inputs": [tensor([PROMPT], "a"), tensor(["The", "A"], "b")]})
    assert [(o["name"], len(o["data"]), o["shape"]) for o in answer["outputs"]] == [("a", 1, [1]), ("b", 2, [2])]
    seeded = {"inputs": [tensor([PROMPT])], "parameters": {"max_new_tokens": 8, "do_sample": True, "seed": 3}}
    assert (infer(api, seeded)["outputs"][0]["data"]
            == [api.generate(PROMPT, max_new_tokens=8, do_sample=True, seed=3)["generated_text"]])
    assert infer(api, {"inputs": [tensor([PROMPT], shape=[1, 1])]})["outputs"][0]["data"]


def test_health_and_models(api):
    assert api.ok_get("/v2/health/live") == {"live": True}
    assert api.ok_get("/v2/health/ready")["ready"] and api.ok_get("/v2/health/ready")["live"]
    assert api.ok_get("/v2")["name"] == "text-generation-inference"
    for path in ("/v2/models/demo", "/v2/models/demo/versions/1"):
        assert api.ok_get(path)["versions"] == ["1"]
        assert api.ok_get(path + "/ready")["ready"]
    assert api.get("/v2/models/nobody").status_code == 404
    assert api.get("/v2/models/nobody/ready").status_code == 404
    assert api.get("/v2/models/demo/infer").status_code == 405
    assert api.get("/v2/modells").status_code == 404


def test_readiness_is_the_daemons(pair):
    served = pair()
    assert served.api.get("/v2/health/ready").status_code == 200
    served.daemon.end()
    assert served.api.get("/v2/health/ready").status_code == 503
    assert served.api.get("/v2/models/demo/ready").status_code == 503
    assert served.api.get("/v2/health/live").status_code == 200


BAD = [
    ({}, "inputs"), ({"inputs": []}, "inputs"), ({"inputs": "a"}, "inputs"), ({"inputs": [{}]}, "inputs[0].name"),
    ({"inputs": [tensor([PROMPT], datatype="FP32")]}, "inputs[0].datatype"), ({"inputs": [tensor([])]}, "inputs[0].data"),
    ({"inputs": [tensor([PROMPT], shape=[2])]}, "inputs[0].shape"), ({"inputs": [tensor([PROMPT], shape=[-1])]}, "inputs[0].shape"),
    ({"inputs": [tensor([PROMPT], data=[1, 300])]}, "inputs[0].data"), ({"inputs": [tensor([PROMPT], data=[255])]}, "UTF-8"),
    ({"inputs": [tensor([PROMPT], data=["a", 3])]}, "inputs[0].data[1]"), ({"inputs": [tensor([""])]}, "empty"),
    ({"inputs": [tensor(["a"] * 5)]}, "batch size"), ({"inputs": [tensor([PROMPT])], "outputs": [{"name": "a"}, {"name": "b"}]}, "mismatch"),
    ({"inputs": [tensor([PROMPT], parameters={"binary_data_size": 5})]}, "binary"),
    ({"inputs": [tensor([PROMPT])], "parameters": {"temperature": 0}}, "temperature"),
    ({"inputs": [tensor([PROMPT])], "parameters": {"temprature": 1}}, "parameters.temprature"),
    ({"inputs": [tensor([PROMPT])], "nope": 1}, "nope")]


@pytest.mark.parametrize("body, named", BAD, ids=[json.dumps(b)[:60] for b, _ in BAD])
def test_what_is_wrong_is_refused(api, body, named):
    assert named in refused(api, body)


def test_other_refusals(api, client):
    assert "nobody" in refused(api, {"inputs": [tensor(["a"])]}, 404, "/v2/models/nobody/infer")
    assert "infer" in refused(api, {}, 404, "/v2/models/demo")
    binary = triton.InferInput("text_input", [1], "BYTES")
    binary.set_data_from_numpy(numpy.array([PROMPT], dtype=object), binary_data=True)
    with pytest.raises(triton.InferenceServerException, match="binary tensors"):
        client.infer("demo", [binary])


def test_keys_guard_inference(serve):
    served = serve("--api-key", "secret", env={"HOSTNAME": "127.0.0.1"})
    url = f"http://127.0.0.1:{served.port}"
    body = {"inputs": [tensor([PROMPT])], "parameters": GREEDY}
    assert Api(url).post("/v2/models/demo/infer", body).status_code == 401
    assert Api(url, "secret").post("/v2/models/demo/infer", body).status_code == 200
    assert Api(url).get("/v2/health/ready").status_code == 200
