"""tgi download-weights against a hub: what it asks, what it chooses, what lies in the cache afterwards."""

import json
import os

import pytest

from conftest import CHOSEN, check_snapshot, noise, safetensors, small_model


def test_brings_a_model_and_prints_its_folder(hub, place):
    files = small_model()
    commit = hub.model("org/name").commit(files)
    ran = place.download("org/name")
    assert ran.out == f"{place.repo('org/name')}/snapshots/{commit}\n"
    check_snapshot(ran.path, files)
    assert (place.repo("org/name") / "refs/main").read_text() == commit
    assert place.leftovers("org/name") == []


def test_a_second_time_fetches_no_file(hub, place):
    hub.model("org/name", small_model())
    place.download("org/name")
    before = len(hub.asked(match="resolve|lfs"))
    assert place.download("org/name").status == 0
    assert len(hub.asked(match="resolve|lfs")) == before


def test_large_files_come_in_parallel_ranges(hub, place):
    files = small_model(40 << 20)
    hub.model("org/name", files)
    check_snapshot(place.download("org/name").path, files)
    ranges = [a.headers.get("Range") for a in hub.asked("storage", "GET") if a.headers.get("Range")]
    assert len(ranges) >= 8 and len(set(ranges)) == len(ranges)
    # One HEAD to the hub says where the file is, and nobody asks it again.
    assert len(hub.asked("hub", match="resolve/.*/model.safetensors")) == 1


def test_revisions_are_branches_tags_and_commits(hub, place):
    model = hub.model("org/name")
    first = small_model(seed=1)
    second = small_model(seed=2)
    old = model.commit(first, ref="v1")
    new = model.commit(second, ref="main")
    check_snapshot(place.download("org/name@v1").path, first)
    check_snapshot(place.download("org/name").path, second)
    check_snapshot(place.download(f"org/name@{old}").path, first)
    check_snapshot(place.download("org/name", "--revision", new).path, second)
    model.commit(first, ref="pr/1")
    check_snapshot(place.download("org/name@pr/1").path, first)
    place.download("org/name@v1", "--revision", "main").refused(3, "two revisions")


def test_pages_of_the_list_are_followed(hub, place):
    hub.page_size = 2
    files = small_model()
    hub.model("org/name", files)
    check_snapshot(place.download("org/name").path, files)
    assert len(hub.asked(match="/tree/")) == 5


def test_shards_come_with_their_index(hub, place):
    files = small_model()
    del files["model.safetensors"]
    for i in range(1, 4):
        files[f"model-0000{i}-of-00003.safetensors"] = safetensors(100_000, i)
    files["model.safetensors.index.json"] = json.dumps(
        {"weight_map": {f"w{i}": f"model-0000{i}-of-00003.safetensors" for i in range(1, 4)}}).encode()
    files["pytorch_model.bin"] = noise(100_000)
    files["pytorch_model.bin.index.json"] = b"{}"
    files["consolidated.safetensors"] = noise(100_000)
    hub.model("org/name", files)
    names = [n for n in CHOSEN if n != "model.safetensors"] + [f"model-0000{i}-of-00003.safetensors" for i in range(1, 4)]
    check_snapshot(place.download("org/name").path, files, names + ["model.safetensors.index.json"])


def test_include_and_exclude_choose_instead(hub, place):
    files = {**small_model(), "onnx/model.onnx": noise(1000)}
    hub.model("org/name", files)
    path = place.download("org/name", "--include", "*.json", "--include", "onnx/*", "--exclude", "original/").path
    check_snapshot(path, files, ["config.json", "tokenizer.json", "tokenizer_config.json", "onnx/model.onnx"])
    place.download("org/name", "--include", "*.gguf").refused(4, "leave no file", ".json")


def test_a_model_without_weights_says_what_it_has(hub, place):
    hub.model("org/name", {"config.json": b"{}", "a.onnx": noise(10), "b.onnx": noise(20)})
    place.download("org/name").refused(4, "no weights", "2 .onnx", "--include")


def test_the_cache_dir_may_be_another(hub, place):
    files = small_model()
    hub.model("org/name", files)
    path = place.download("org/name", "--cache-dir", place.folder / "other").path
    assert path.is_relative_to(place.folder / "other/models--org--name")
    check_snapshot(path, files)


def test_offline_finds_only_what_is_whole(hub, place):
    files = small_model()
    hub.model("org/name", files)
    place.download("org/name", "--offline").refused(4, "--offline", "tgi download-weights")
    path = place.download("org/name").path
    num = len(hub.requests)
    assert place.download("org/name", "--offline").path == path
    assert place.download("org/name", env={"HF_HUB_OFFLINE": "1"}).path == path
    assert len(hub.requests) == num
    os.remove(path / "model.safetensors")
    place.download("org/name", env={"HF_HUB_OFFLINE": "1"}).refused(4, "HF_HUB_OFFLINE")


def test_an_unreachable_hub_gives_what_is_in_the_cache(hub, place):
    hub.model("org/name", small_model())
    path = place.download("org/name").path
    ran = place.download("org/name", env={"HF_ENDPOINT": "http://127.0.0.1:9"}, timeout=90)
    assert ran.path == path and "using what was downloaded before" in ran.err
    place.download("org/other", env={"HF_ENDPOINT": "http://127.0.0.1:9"}, timeout=90).refused(8, "127.0.0.1:9")


def test_the_environment_is_read_as_huggingface_hub_reads_it(hub, place):
    files = small_model()
    hub.model("org/name", files)
    cache = place.folder / "deep"
    path = place.download("org/name", env={"HF_HUB_CACHE": "$HOME/deep"}).path
    assert path.is_relative_to(cache)
    path = place.download("org/name", env={"HF_HOME": "", "XDG_CACHE_HOME": str(place.folder / "xdg")})
    asked = place.python("import huggingface_hub.constants as c; print(c.HF_HUB_CACHE)", {"HF_HOME": "~/x/${USER}", "USER": "me"})
    mine = place.download("org/name", env={"HF_HOME": "~/x/${USER}", "USER": "me"}).path
    assert str(mine).startswith(asked)


def test_json_is_one_object_a_line(hub, place):
    hub.model("org/name", small_model())
    ran = place.download("org/name", "--json")
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert events[0]["event"] == "plan" and {f["name"] for f in events[0]["files"]} == set(CHOSEN)
    assert {e["name"] for e in events if e["event"] == "file"} == set(CHOSEN)
    assert events[-1]["event"] == "done" and os.path.isdir(events[-1]["path"])
    assert ran.err == ""


def test_quiet_says_nothing(hub, place):
    hub.model("org/name", small_model())
    assert place.download("org/name", "--quiet").err == ""


def test_a_folder_is_only_looked_at(hub, place):
    folder = place.folder / "mine"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    place.download(folder).refused(4, "weights")
    (folder / "model.safetensors").write_bytes(safetensors(100))
    assert place.download(folder).path == folder
    assert place.download("mine").path == folder
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"w": "model-00001-of-00002.safetensors"}}')
    place.download(folder).refused(4, "model-00001-of-00002.safetensors")


@pytest.mark.parametrize("name", ["a/b/c", "org/", "/org", "org/na me", "org/..", "org--x/name", "org/name.git", "-o/name", "org/name@a..b",
                                  "org/name@", "org/name@/x"])
def test_names_that_are_none_are_refused(hub, place, name):
    assert place.download("--", name).status in (2, 3, 4)
    assert not hub.requests
