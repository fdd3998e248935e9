"""Vectors and scores over HTTP: LoRAX's, text-embeddings-inference's and OpenAI's routes. That the numbers are those of transformers
is what tests/vectors shows; here that they are those of the goldens is looked at once per route."""

import base64
import json
import math
import shutil
import struct
import subprocess
import threading

import pytest

from client import Api
from gateway import ROOT, TGI, Daemon, Gateway, Home

GOLDEN = ROOT / "tests/golden/vectors"


class Served:
    """A golden model behind a gateway."""

    def __init__(self, name):
        self.folder = GOLDEN / name
        self.expected = json.loads((self.folder / "expected.json").read_text())
        self.home = Home()
        self.daemon = Daemon(self.home, str(self.folder), ("--dtype", "f32"))
        self.gateway = Gateway(self.home, [], model=str(self.folder))
        self.api = Api(self.gateway.url)

    def end(self):
        self.gateway.end()
        self.daemon.end()
        self.home.remove()

    def ask(self, route, body, status=200):
        response = self.api.post(route, body)
        assert response.status_code == status, response.text
        return response.json()

    def run(self, *args, **more):
        return subprocess.run([TGI, *args], env=self.home.environment(), capture_output=True, timeout=60, **more)


def served(name):
    @pytest.fixture(scope="module")
    def fixture():
        one = Served(name)
        yield one
        one.end()

    return fixture


embedder = served("bert-cls")
prompted = served("xlm-roberta")
dense = served("bert-max")
classifier = served("bert-classify")
ranker = served("bert-cross-encoder")
tagger = served("bert-tokens")


def near(got, wanted, by=1e-5):
    return len(got) == len(wanted) and all(abs(a - b) <= by for a, b in zip(got, wanted))


def test_embed_answers_one_text_as_lorax_and_a_list_as_tei(embedder):
    texts, vectors = embedder.expected["texts"], embedder.expected["vectors"]
    assert near(embedder.ask("/embed", {"inputs": texts[1]})["embeddings"], vectors[1])
    many = embedder.ask("/embed", {"inputs": texts})
    assert all(near(got, wanted) for got, wanted in zip(many, vectors, strict=True))
    assert near(embedder.ask("/embed", {"inputs": embedder.expected["ids"][2]})["embeddings"], vectors[2])


def test_embed_all_gives_the_vectors_of_tokens(embedder, prompted, classifier):
    texts, vectors, ids = (embedder.expected[key] for key in ("texts", "vectors", "ids"))
    many = embedder.ask("/embed_all", {"inputs": texts})
    assert [len(tokens) for tokens in many] == [len(of_text) for of_text in ids]
    for tokens, wanted in zip(many, vectors):  # this model's vector of a text is that of its first token
        length = math.sqrt(sum(x * x for x in tokens[0])) if math.isclose(sum(x * x for x in wanted), 1, abs_tol=1e-4) else 1
        assert near([x / length for x in tokens[0]], wanted)
    assert embedder.ask("/embed_all", {"inputs": texts[1]}) == [many[1]] == embedder.ask("/embed_all", {"inputs": ids[1]})
    assert prompted.ask("/embed_all", {"inputs": "hello"}) != prompted.ask("/embed_all", {"inputs": "hello", "prompt_name": "passage"})
    long = {"inputs": "fox " * 200}
    assert "`truncate`" in embedder.ask("/embed_all", long, 422)["error"]
    assert len(embedder.ask("/embed_all", long | {"truncate": True})[0]) == 90
    assert "normalize" in embedder.api.post("/embed_all", {"inputs": "a", "normalize": True}).text
    assert "is made for the task" in classifier.ask("/embed_all", {"inputs": "a"}, 422)["error"]


def test_tokenize_leaves_out_what_marks_the_ends(embedder):
    ids = embedder.expected["ids"][1]
    body = {"inputs": embedder.expected["texts"][1]}
    assert [token["id"] for token in embedder.ask("/tokenize", body)] == ids
    assert [token["id"] for token in embedder.ask("/tokenize", body | {"add_special_tokens": False})] == ids[1:-1]


def test_embeddings_are_openais_in_both_encodings(embedder):
    texts, vectors = embedder.expected["texts"], embedder.expected["vectors"]
    answer = embedder.ask("/v1/embeddings", {"input": texts[:3], "model": str(embedder.folder)})
    assert answer["object"] == "list" and [d["index"] for d in answer["data"]] == [0, 1, 2]
    assert all(near(d["embedding"], v) for d, v in zip(answer["data"], vectors))
    tokens = sum(len(ids) for ids in embedder.expected["ids"][:3])
    assert answer["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    coded = embedder.ask("/v1/embeddings", {"input": texts[0], "encoding_format": "base64"})
    raw = base64.b64decode(coded["data"][0]["embedding"])
    assert list(struct.unpack(f"<{len(raw) // 4}f", raw)) == pytest.approx(answer["data"][0]["embedding"], abs=1e-7)


def test_the_openai_client_embeds(embedder):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=embedder.gateway.url + "/v1", api_key="x")
    answer = client.embeddings.create(model=str(embedder.folder), input=embedder.expected["texts"][:2])
    assert near(answer.data[1].embedding, embedder.expected["vectors"][1])


def test_dimensions_and_normalize(dense):
    text, whole = dense.expected["texts"][0], dense.expected["vectors"][0]
    short = dense.ask("/embed", {"inputs": text, "dimensions": 8})["embeddings"]
    assert near(short, whole[:8], 1e-4)  # this model's own files don't normalise
    unit = dense.ask("/embed", {"inputs": text, "dimensions": 8, "normalize": True})["embeddings"]
    assert math.isclose(sum(x * x for x in unit), 1, abs_tol=1e-5)
    assert "dimensions" in dense.ask("/embed", {"inputs": text, "dimensions": 33}, 422)["error"]


def test_prompts_stand_before_the_text(prompted):
    def embed(**body):
        return prompted.ask("/embed", body)["embeddings"]

    by_default = embed(inputs="hello")
    assert by_default == embed(inputs="hello", prompt_name="query") != embed(inputs="hello", prompt_name="passage")
    error = prompted.ask("/embed", {"inputs": "hello", "prompt_name": "nobody"}, 422)["error"]
    assert "passage, query" in error


def test_too_long_is_an_error_or_cut(embedder):
    text = "fox " * 200
    error = embedder.ask("/embed", {"inputs": [text]}, 422)["error"]
    assert "at most 90 tokens" in error and "`truncate`" in error and "202" in error
    cut = embedder.ask("/embed", {"inputs": text, "truncate": True})["embeddings"]
    assert near(cut, embedder.ask("/embed", {"inputs": "fox " * 88})["embeddings"], 1e-6)


@pytest.mark.parametrize("body, part", [
    ({"inputs": []}, "empty"), ({"inputs": {"a": 1}}, "inputs"), ({"inputs": ["a", 3]}, "inputs[1]"), ({}, "inputs"),
    ({"inputs": [99999]}, "vocabulary"), ({"inputs": "a", "pooling": "cls"}, "pooling"),
])
def test_bad_bodies_are_refused_by_name(embedder, body, part):
    response = embedder.api.post("/embed", body)
    assert response.status_code == 422 and part in response.text


def test_classify_sorts_labels_by_their_scores(classifier):
    texts, scores = classifier.expected["texts"], classifier.expected["scores"]
    got = classifier.ask("/classify", {"inputs": texts[2]})
    assert [row["label"] for row in got] == [f"LABEL_{i}" for i in sorted(range(3), key=lambda i: -scores[2][i])]
    assert near([row["score"] for row in got], sorted(scores[2], reverse=True))
    raw = classifier.ask("/predict", {"inputs": texts[2], "raw_scores": True})
    assert near([row["score"] for row in raw], sorted(classifier.expected["logits"][2], reverse=True), 1e-4)
    batch = classifier.ask("/classify_batch", {"inputs": texts[:2]})
    assert [len(rows) for rows in batch] == [3, 3]
    assert classifier.ask("/predict", {"inputs": [[texts[0]], [texts[1]]]}) == batch


def test_rerank_orders_texts(ranker):
    query, text = ranker.expected["texts"][0]
    body = {"query": query, "texts": [text, "b", "The fox"], "return_text": True}
    got = ranker.ask("/rerank", body)
    assert sorted(row["index"] for row in got) == [0, 1, 2]
    assert [row["score"] for row in got] == sorted((row["score"] for row in got), reverse=True)
    first = next(row for row in got if row["index"] == 0)
    assert first["text"] == text and near([first["score"]], ranker.expected["scores"][0])
    best = ranker.ask("/v1/rerank", {"query": query, "documents": [{"text": text}, "b"], "top_n": 1,
                                     "return_documents": True})
    assert len(best["results"]) == 1 and best["results"][0]["document"]["text"] in (text, "b")
    lines = ranker.run("rerank", query, "--json", input=f"{text}\nb\nThe fox\n".encode())
    assert [json.loads(line)["index"] for line in lines.stdout.splitlines()] == [row["index"] for row in got]


def test_the_one_address_answers_by_the_task(embedder, classifier, ranker, tagger):
    text = embedder.expected["texts"][1]
    for route in ("/", "/invocations"):
        assert embedder.ask(route, {"inputs": text}) == [embedder.ask("/embed", {"inputs": text})["embeddings"]]
        assert len(embedder.ask(route, {"inputs": [text, "b"]})) == 2
        assert classifier.ask(route, {"inputs": text}) == classifier.ask("/predict", {"inputs": text})
        assert tagger.ask(route, {"inputs": text}) == tagger.ask("/classify", {"inputs": text})
        body = {"query": "a", "texts": ["b", "c"]}
        assert ranker.ask(route, body) == ranker.ask("/rerank", body)
    refused = embedder.api.post("/", {"prompt": "a"})
    assert refused.status_code == 422 and "inputs" in refused.text


def test_the_hub_client_finds_vectors_and_entities(embedder, tagger):
    hub = pytest.importorskip("huggingface_hub")
    text = embedder.expected["texts"][1]
    client = hub.InferenceClient(model=embedder.gateway.url)
    assert near(client.feature_extraction(text)[0].tolist(), embedder.expected["vectors"][1])
    assert client.sentence_similarity(text, other_sentences=[text, "b"])[0] == pytest.approx(1, abs=1e-5)
    entities = hub.InferenceClient(model=tagger.gateway.url).token_classification(text)
    assert [e.start for e in entities] == [e["start"] for e in tagger.ask("/classify", {"inputs": text})]


def test_similarity_is_the_cosine_of_vectors(dense):
    texts = dense.expected["texts"][:3]
    vectors = dense.ask("/embed", {"inputs": texts, "normalize": True})
    wanted = [sum(a * b for a, b in zip(vectors[0], other)) for other in vectors[1:]]
    body = {"inputs": {"source_sentence": texts[0], "sentences": texts[1:]}}
    assert dense.ask("/similarity", body) == pytest.approx(wanted, abs=1e-5)
    long = {"inputs": {"source_sentence": "a", "sentences": ["fox " * 200]}}
    assert "`truncate`" in dense.ask("/similarity", long, 422)["error"]
    assert len(dense.ask("/similarity", long | {"parameters": {"truncate": True, "truncation_direction": "Left"}})) == 1
    assert "inputs.sentences" in dense.ask("/similarity", {"inputs": {"source_sentence": "a", "sentences": []}}, 422)["error"]


def test_score_keeps_the_order_of_pairs(ranker):
    query, text = ranker.expected["texts"][0]
    answer = ranker.ask("/v1/score", {"text_1": query, "text_2": [text, "b"], "model": str(ranker.folder)})
    assert near([answer["data"][0]["score"]], ranker.expected["scores"][0]) and answer["usage"]["total_tokens"] > 0
    assert [row["index"] for row in answer["data"]] == [0, 1]
    pairs = ranker.ask("/score", {"text_1": [query, "b"], "text_2": [text, "b"]})["data"]
    assert pairs[0]["score"] == answer["data"][0]["score"]
    raw = ranker.ask("/score", {"text_1": query, "text_2": text, "use_activation": False})["data"]
    assert near([raw[0]["score"]], ranker.expected["logits"][0], 1e-4)
    for body, part in (({"text_1": ["a", "b"], "text_2": ["c"]}, "text_1"), ({"text_1": "a", "text_2": []}, "text_2"),
                       ({"text_1": "a", "text_2": "b " * 300}, "truncate_prompt_tokens"),
                       ({"text_1": "a", "text_2": "b", "truncate_prompt_tokens": 5}, "truncate_prompt_tokens")):
        assert part in ranker.ask("/score", body, 422)["error"]["message"], body
    assert ranker.ask("/score", {"text_1": "a", "text_2": "b " * 300, "truncate_prompt_tokens": -1})["data"]


def test_fields_of_cohere_are_taken_where_they_change_nothing(ranker):
    body = {"query": "a", "documents": ["b", "c"], "model": "rerank-v3.5"}
    plain = ranker.ask("/v1/rerank", body)
    assert ranker.ask("/v2/rerank", body) == plain
    limit = ranker.api.get("/info").json()["max_input_tokens"]
    for more in ({"max_chunks_per_doc": 10}, {"rank_fields": ["text"]}, {"max_tokens_per_doc": limit}, {"max_tokens_per_doc": 4096}):
        assert ranker.ask("/v2/rerank", body | more) == plain, more
    for more in ({"max_chunks_per_doc": 3}, {"rank_fields": ["title"]}, {"max_tokens_per_doc": limit - 1}):
        assert next(iter(more)) in ranker.ask("/v1/rerank", body | more, 422)["error"]["message"], more


def test_messages_name_the_field_that_was_sent(embedder, ranker):
    long = "fox " * 300
    assert "`documents` cannot be empty" in ranker.ask("/v1/rerank", {"query": "a", "documents": []}, 422)["error"]["message"]
    assert "`documents` cannot be empty" in ranker.ask("/rerank", {"query": "a", "documents": []}, 422)["error"]["message"]
    assert "`texts` cannot be empty" in ranker.ask("/rerank", {"query": "a", "texts": []}, 422)["error"]
    assert "`texts` 1 must have at most" in ranker.ask("/rerank", {"query": "a", "texts": ["b", long]}, 422)["error"]
    assert "`input` must have at most" in embedder.ask("/v1/embeddings", {"input": long}, 422)["error"]["message"]


def test_what_is_too_long_is_cut_at_the_side_that_is_asked_for(embedder):
    text = "cat " * 100 + "fox " * 100
    def cut(**more):
        return embedder.ask("/embed", {"inputs": text, "truncate": True, **more})["embeddings"]

    assert near(cut(truncation_direction="Left"), embedder.ask("/embed", {"inputs": "fox " * 88})["embeddings"], 1e-6)
    assert cut(truncation_direction="right") == cut()
    error = embedder.ask("/embed", {"inputs": text, "truncation_direction": "up"}, 422)["error"]
    assert "`truncation_direction` must be left or right" in error


def test_entities_have_loraxs_shape(tagger):
    for text, wanted in zip(tagger.expected["texts"], tagger.expected["entities"]):
        got = tagger.ask("/classify", {"inputs": text})
        assert [(e["entity_group"], e["start"], e["end"]) for e in got] == [
            (e["group"], e["start"], e["end"]) for e in wanted]
        assert near([e["score"] for e in got], [e["score"] for e in wanted])
    assert any(tagger.expected["entities"])


def test_a_model_of_another_task_says_so(embedder, classifier, api):
    for one, route, body in ((embedder, "/generate", {"inputs": "a"}), (embedder, "/classify", {"inputs": "a"}),
                             (classifier, "/embed", {"inputs": "a"})):
        assert "is made for the task" in one.ask(route, body, 422)["error"]
    assert "is made for the task generate" in api.post("/embed", {"inputs": "a"}).json()["error"]


def test_a_reranker_whose_template_writes_pairs_only_starts_up(tmp_path):
    folder = tmp_path / "pairs"
    shutil.copytree(GOLDEN / "qwen3-reranker-one", folder)
    (folder / "chat_template.jinja").write_text(
        '{% for m in messages if m.role in ["query", "document"] %}{{ m.content }} {% endfor %}')
    config = json.loads((folder / "sentence_bert_config.json").read_text())
    config["modality_config"]["message"]["format"] = "flat"
    (folder / "sentence_bert_config.json").write_text(json.dumps(config))
    one = Served(folder)
    try:
        assert one.api.get("/startup").status_code == 200
        assert len(one.ask("/rerank", {"query": "a", "texts": ["b", "c"]})) == 2
        assert "pairs of a query and a document only" in one.ask("/classify", {"inputs": "a"}, 422)["error"]
    finally:
        one.end()


def test_startup_and_info_know_the_task(embedder, classifier, api):
    for one in (embedder.api, classifier.api, api):
        assert one.get("/startup").status_code == 200
    told = embedder.api.get("/info").json()
    assert told["model_pipeline_tag"] == "feature-extraction"
    assert told["max_input_tokens"] == told["max_total_tokens"] == 90  # what is taken of a text
    assert "embed, 32 numbers" in embedder.run("ps").stdout.decode()


def test_tgi_embed_writes_lines_and_arrays(embedder, tmp_path):
    texts, vectors = embedder.expected["texts"], embedder.expected["vectors"]
    lines = embedder.run("embed", input="\n".join(texts).encode())
    rows = [json.loads(line) for line in lines.stdout.splitlines()]
    assert [row["index"] for row in rows] == list(range(len(texts)))
    assert all(near(row["embedding"], wanted) for row, wanted in zip(rows, vectors))
    out = tmp_path / "a.npy"
    assert embedder.run("embed", "--format", "npy", "-o", str(out), input="\n".join(texts).encode()).returncode == 0
    data = out.read_bytes()
    assert data.startswith(b"\x93NUMPY\x01\x00") and f"({len(texts)}, 32)".encode() in data[:128]
    assert (10 + struct.unpack("<H", data[8:10])[0]) % 64 == 0
    assert near(struct.unpack(f"<{32 * len(texts)}f", data[-128 * len(texts):])[32:64], vectors[1])
    bad = embedder.run("embed", input=b"ok\n\xff\n")
    assert bad.returncode == 3 and b"line 2 is not valid UTF-8" in bad.stderr
    assert [json.loads(line)["index"] for line in bad.stdout.splitlines()] == [0]  # told as it came


def test_many_clients_get_their_own_vectors(embedder):
    texts, vectors = embedder.expected["texts"], embedder.expected["vectors"]
    wrong = []

    def ask(i):
        for k in range(8):
            at = (i + k) % len(texts)
            if not near(embedder.ask("/embed", {"inputs": texts[at]})["embeddings"], vectors[at]):
                wrong.append(at)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
