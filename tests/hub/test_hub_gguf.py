"""GGUF files: of the hub by their quantisation, of addresses and buckets, and those that other programs have brought here."""

import json
import os
import pathlib
import shutil

from conftest import BUILD, noise, small_model

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden" / "gguf" / "phi3-window" / "model.gguf"
DAEMON = {"TGI_DAEMON": str(BUILD / "bin" / "tgid")}


def repository():
    return {"README.md": b"---\nlicense: mit\n---\n", "config.json": b"{}", "imatrix.gguf": noise(9), "mmproj-F16.gguf": noise(8),
            "Name-BF16/Name-BF16-00001-of-00002.gguf": noise(100_000, 1), "Name-BF16/Name-BF16-00002-of-00002.gguf": noise(90_000, 2),
            "Name-Q4_K_M.gguf": noise(80_000, 3), "Name-UD-Q4_K_XL.gguf": noise(81_000, 4), "name-q8_0.gguf": noise(70_000, 5)}


def listed(place, **env):
    return {model["name"]: model for model in json.loads(place.tgi("ls", "--json", env=env).out)}


def files_of(path):
    return sorted(str(p.relative_to(path)) for p in path.rglob("*") if not p.is_dir())


def tree(folder):
    return {str(p): (p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(folder.rglob("*"))}


def test_a_file_of_the_hub_by_its_quantisation(hub, place):
    files = repository()
    hub.model("org/name", files)
    for name in ["org/name:Q8_0", "hf.co/org/name:q8_0", "https://huggingface.co/org/name:q8_0", "org/name:name-q8_0.gguf",
                 "org/name@main:q8_0", "org/name:q8_0@main", f"{hub.url}/org/name/resolve/main/name-q8_0.gguf?download=true",
                 "https://huggingface.co/org/name/blob/main/name-q8_0.gguf"]:
        path = place.download(name).path
        assert path.name == "name-q8_0.gguf" and path.read_bytes() == files["name-q8_0.gguf"], name
        assert files_of(path.parent) == ["name-q8_0.gguf"]
    assert len(hub.asked("storage", "GET", "q8_0|" + "name")) <= 2  # fetched once
    assert place.download("org/name:Q8_0", "--offline").path == path
    assert listed(place)["org/name:Q8_0"]["path"] == str(path)

    large = place.download("org/name:bf16").path
    assert large.name == "Name-BF16-00001-of-00002.gguf" and large.read_bytes() == files["Name-BF16/" + large.name]
    assert (large.parent / "Name-BF16-00002-of-00002.gguf").read_bytes() == files["Name-BF16/Name-BF16-00002-of-00002.gguf"]
    assert place.download("org/name:Q4_K_XL").path.name == "Name-UD-Q4_K_XL.gguf"
    models = listed(place)
    assert sorted(models) == ["demo", "org/name:BF16", "org/name:Q8_0", "org/name:UD-Q4_K_XL"]
    assert models["org/name:BF16"]["bytes"] == 190_000 and models["org/name:BF16"]["format"] == "gguf"
    assert {model["state"] for name, model in models.items() if name != "demo"} == {"ready"}


def test_the_usual_quantisation_is_taken_where_none_is_named(hub, place):
    hub.model("org/name", repository())
    assert place.download("org/name").path.name == "Name-Q4_K_M.gguf"
    assert list(listed(place)) == ["demo", "org/name:Q4_K_M"]
    # What is here is enough for those that need not ask.
    second = repository()
    del second["Name-Q4_K_M.gguf"]
    hub.model("org/two", second)
    place.download("org/two:Q8_0")
    assert place.download("org/two", "--offline").path.name == "name-q8_0.gguf"
    hub.model("org/both", {**small_model(), "x-Q4_K_M.gguf": noise(10)})
    assert (place.download("org/both").path / "model.safetensors").exists()


def test_what_is_not_there_is_told_with_what_is(hub, place):
    hub.model("org/name", repository())
    place.download("org/name:Q2_K").refused(4, "Q2_K", "Q4_K_M", "UD-Q4_K_XL", "BF16")
    place.download("org/name:Q8_0", "--include", "*").refused(3, "--include")
    place.download("name:Q8_0").refused(3, "without ORG/")
    hub.model("org/plain", small_model())
    place.download("org/plain:Q8_0").refused(4, "no GGUF file")
    hub.model("org/many", {"a.gguf": noise(10), "b.gguf": noise(10)})
    place.download("org/many").refused(3, "a.gguf, b.gguf")
    assert place.download("org/many:b.gguf").path.name == "b.gguf"
    hub.model("org/cut", {"a-Q8_0-00001-of-00002.gguf": noise(10)})
    place.download("org/cut:Q8_0").refused(4, "2 parts, of which 1")


def test_a_cache_of_an_older_huggingface_hub_and_removing(hub, place):
    files = repository()
    hub.model("org/name", files)
    place.download("org/name:Q8_0")
    place.download("org/name:BF16")
    shutil.rmtree(place.repo("org/name") / "trees")
    path = place.download("org/name:Q8_0", "--offline").path
    # One file goes, the others stay.
    removed = place.tgi("rm", "-y", "org/name:BF16")
    assert removed.status == 0 and "removed org/name:BF16" in removed.out, removed.err
    assert path.read_bytes() == files["name-q8_0.gguf"]
    assert list(listed(place)) == ["demo", "org/name:Q8_0"]
    assert len(list((place.repo("org/name") / "blobs").iterdir())) == 1
    place.tgi("rm", "-y", "org/name:Q8_0")
    assert list(listed(place)) == ["demo"] and not place.repo("org/name").exists()


def test_an_address_and_a_bucket(hub, place):
    files = {"a model-Q8_0.gguf": noise(3_000), "x-00001-of-00002.gguf": noise(2_000, 1), "x-00002-of-00002.gguf": noise(2_000, 2)}
    hub.folders.update({f"/some/{name}": data for name, data in files.items()})
    path = place.download(f"{hub.storage_url}/some/a%20model-Q8_0.gguf").path
    assert path.name == "a model-Q8_0.gguf" and path.read_bytes() == files[path.name]
    path = place.download(f"{hub.storage_url}/some/x-00001-of-00002.gguf").path
    assert files_of(path.parent) == ["x-00001-of-00002.gguf", "x-00002-of-00002.gguf"]
    place.download(f"{hub.storage_url}/some/none.gguf").refused(4, "none.gguf", "not there")
    hub.buckets["weights"] = {f"models/{name}": data for name, data in files.items()}
    path = place.download("s3://weights/models/a model-Q8_0.gguf", env={"AWS_ENDPOINT_URL": hub.storage_url}).path
    assert path.read_bytes() == files[path.name]


def test_a_file_of_the_hub_is_loaded(hub, place):
    hub.model("org/name", {"Name-F32.gguf": GOLDEN.read_bytes()})
    ran = place.tgi("load", "org/name", env=DAEMON)
    assert ran.status == 0, ran.err
    shown = place.tgi("ps", env=DAEMON).out
    place.tgi("stop")
    assert "org/name:F32" in shown


def ollama(place, name, data, kinds=("model",), host="registry.ollama.ai", namespace="library"):
    folder = place.folder / ".ollama" / "models"
    model, tag = name.split(":")
    manifest = folder / "manifests" / host / namespace / model / tag
    manifest.parent.mkdir(parents=True, exist_ok=True)
    (folder / "blobs").mkdir(exist_ok=True)
    digest = "%064x" % len(data)
    (folder / "blobs" / ("sha256-" + digest)).write_bytes(data)
    layers = [{"mediaType": f"application/vnd.ollama.image.{kind}", "digest": f"sha256:{digest}", "size": len(data)} for kind in kinds]
    layers.append({"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:00", "size": 1})
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    return folder / "blobs" / ("sha256-" + digest)


def test_models_of_other_programs_are_listed_used_and_left_alone(hub, place):
    blob = ollama(place, "phi:3b", GOLDEN.read_bytes())
    ollama(place, "tuned:latest", noise(10), kinds=("model", "adapter"))
    theirs = ollama(place, "Name-GGUF:Q8_0", noise(500), host="hf.co", namespace="org")
    ollama(place, "llama:latest", noise(700))
    (place.folder / ".ollama/models/manifests/registry.ollama.ai/library/bad").mkdir()
    (place.folder / ".ollama/models/manifests/registry.ollama.ai/library/bad/latest").write_text("{")
    studio = place.folder / ".lmstudio/models/someone/Phi-GGUF"
    studio.mkdir(parents=True)
    shutil.copy(GOLDEN, studio / "Phi-Q4_K_M.gguf")
    (studio / "mmproj-F16.gguf").write_bytes(noise(10))
    cache = place.folder / "cache/llama.cpp"
    cache.mkdir(parents=True)
    (cache / "ggml_tiny_model-q4_0.gguf").write_bytes(noise(300))
    (cache / "manifest=ggml=tiny=latest.json").write_text(json.dumps({"ggufFile": {"rfilename": "model-q4_0.gguf"}}))
    (cache / "other.gguf").write_bytes(noise(100))
    before = tree(place.folder / ".ollama"), tree(place.folder / ".lmstudio"), tree(cache)

    models = listed(place)
    assert sorted(models) == sorted(["demo", "phi:3b", "tuned:latest", "llama:latest", "hf.co/org/Name-GGUF:Q8_0",
                                     "someone/Phi-GGUF:Q4_K_M", "ggml/tiny:latest", str(cache / "other.gguf")])
    assert models["phi:3b"]["path"] == str(blob) and models["phi:3b"]["source"] == "ollama" and models["phi:3b"]["format"] == "gguf"
    assert models["hf.co/org/Name-GGUF:Q8_0"]["path"] == str(theirs)
    assert models["ggml/tiny:latest"]["bytes"] == 300

    for name in ["phi:3b", "someone/Phi-GGUF:q4_k_m", "someone/Phi-GGUF"]:
        ran = place.tgi("load", name, env=DAEMON)
        assert ran.status == 0, ran.err
    assert hub.requests == []  # nobody was asked
    shown = place.tgi("show", "phi:3b", env=DAEMON)
    assert shown.status == 0 and "Phi3ForCausalLM" in shown.out, shown.err
    assert "\nphi3.block_count" in shown.out and "61 of string" in shown.out  # its metadata
    place.tgi("load", "phi:3b", env=DAEMON)
    assert "phi:3b" in place.tgi("ps", env=DAEMON).out
    place.tgi("stop")
    place.tgi("rm", "-y", "phi:3b").refused(3, "ollama", "only reads")
    place.tgi("load", "absent:7b", env=DAEMON).refused(4, "ollama has no such model", "ORG/NAME:QUANTISATION")
    assert (tree(place.folder / ".ollama"), tree(place.folder / ".lmstudio"), tree(cache)) == before
    moved = place.folder / "elsewhere"
    os.rename(place.folder / ".ollama" / "models", moved)
    assert "phi:3b" not in listed(place) and "phi:3b" in listed(place, OLLAMA_MODELS=str(moved))


def test_a_model_of_ollama_has_its_defaults(hub, place):
    blob = ollama(place, "phi:3b", GOLDEN.read_bytes())
    layers = []
    for kind, text in [("model", None), ("system", "You are Mario."), ("params", '{"num_ctx": 64, "num_keep": 4}')]:
        digest = blob.name[len("sha256-"):] if text is None else f"{len(text):064x}"
        if text is not None:
            (blob.parent / f"sha256-{digest}").write_text(text)
        layers.append({"mediaType": f"application/vnd.ollama.image.{kind}", "digest": f"sha256:{digest}"})
    manifest = place.folder / ".ollama/models/manifests/registry.ollama.ai/library/phi/3b"
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    assert listed(place)["phi:3b"]["path"] == str(blob)
    ran = place.tgi("load", "phi:3b", env=DAEMON)
    assert ran.status == 0 and ran.out.startswith("loaded phi:3b "), ran.err
    assert "phi:3b" in place.tgi("ps").out
    model = json.loads(place.tgi("ps", "--json").out)["model"]
    assert model["name"] == str(manifest) and model["max_total_tokens"] == 64
    shown = place.tgi("show", "phi:3b").out
    assert "Phi3ForCausalLM" in shown and "You are Mario." in shown and "num_ctx          64" in shown, shown
    place.tgi("stop")
    # What is made of it has them too, and a copy of its weights is made of those.
    (place.folder / "Modelfile").write_text("FROM phi:3b\nPARAMETER seed 3\n")
    ran = place.tgi("create", "mario", "-f", str(place.folder / "Modelfile"))
    assert ran.status == 0, ran.err
    made = place.tgi("show", "--modelfile", "mario").out
    assert made.startswith("FROM phi:3b\n") and "SYSTEM You are Mario." in made and "PARAMETER seed 3" in made
    # What can't be honoured is said by name, and the weights alone can be loaded.
    (blob.parent / f"sha256-{layers[2]['digest'][7:]}").write_text('{"mirostat": 2}')
    place.tgi("load", "phi:3b", env=DAEMON).refused(3, "phi:3b of ollama: params: ", "got mirostat", str(blob))
    assert "got mirostat" in place.tgi("show", "phi:3b").out
    assert place.tgi("load", blob).status == 0
    place.tgi("stop")
