"""What becomes of downloads: checkpoints of torch converted, models listed, shown and removed, beside huggingface_hub."""

import json
import os
import pathlib
import shutil

from conftest import BUILD, small_model

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"


def torch_model():
    source = GOLDEN / "models" / "qwen2"
    return {"config.json": (source / "config.json").read_bytes(),
            "pytorch_model.bin": (GOLDEN / "torch" / "qwen2" / "pytorch_model.bin").read_bytes(),
            "README.md": b"---\nlicense: mit\n---\n"}


def listed(place, **env):
    return {model["name"]: model for model in json.loads(place.tgi("ls", "--json", env=env).out)}


def tree(folder):
    """Every file and link below it, with what it says."""
    out = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            out[name] = "-> " + os.readlink(path)
        elif path.is_file():
            out[name] = path.read_bytes()
    return out


def test_a_checkpoint_of_torch_is_converted_listed_and_removed_with_it(hub, place):
    hub.model("org/bin", torch_model())
    ran = place.download("org/bin")
    assert ran.path.is_relative_to(place.folder / "cache" / "tgi" / "converted"), ran.path
    assert (ran.path / "model.safetensors").exists() and not (ran.path / "pytorch_model.bin").exists()
    assert (ran.path / "config.json").read_bytes() == torch_model()["config.json"]
    model = listed(place)["org/bin"]
    assert model["recorded"] and model["format"] == "safetensors" and model["path"] == str(ran.path)
    assert place.download("org/bin").path == ran.path

    removed = place.tgi("rm", "-y", "org/bin")
    assert removed.status == 0 and removed.out.startswith("removed org/bin, "), removed.err
    assert not ran.path.exists() and not place.repo("org/bin").exists()
    assert list(listed(place)) == ["demo"]


def test_a_checkpoint_with_code_in_it_is_refused_by_name(hub, place):
    files = torch_model()
    files["pytorch_model.bin"] = (GOLDEN / "torch" / "refused" / "os_system.bin").read_bytes()
    hub.model("org/evil", files)
    place.download("org/evil").refused(3, "posix.system", "code in it", "not opened")
    assert not list((place.folder / "cache").rglob("*.safetensors"))
    assert "org/evil" not in [m["name"] for m in listed(place).values() if m["recorded"]]


def test_what_was_downloaded_is_known_with_its_hashes(hub, place):
    hub.model("org/name", small_model())
    path = place.download("org/name").path
    model = listed(place)["org/name"]
    assert model["recorded"] and model["path"] == str(path) and model["commit"] == path.name
    assert model["source"] == hub.url and model["last_used_at"] is not None
    shown = json.loads(place.tgi("show", "org/name", "--json",
                                 env={"TGI_DAEMON": str(BUILD / "bin" / "tgid")}).out)
    place.tgi("stop")
    hashes = {file["name"]: file.get("hash", "") for file in shown["files"]}
    assert hashes["model.safetensors"].startswith("sha256:") and hashes["config.json"].startswith("git:")


def test_a_damaged_store_stops_no_download(hub, place):
    store = place.folder / "store.db"
    store.write_bytes(b"x" * 5000)
    hub.model("org/name", small_model())
    ran = place.download("org/name", env={"TGI_STORE": str(store)})
    assert ran.path.is_dir() and "tgi ls" in ran.err and "mv '" in ran.err
    assert store.read_bytes() == b"x" * 5000


def test_removing_leaves_what_huggingface_hub_leaves(hub, place):
    files = small_model()
    model = hub.model("org/name", files)
    first = place.download("org/name").path.name
    changed = {**files, "config.json": b'{"changed": true}\n'}
    hub.model("org/name", changed)
    second = place.download("org/name").path.name
    assert first != second
    # Ours in one copy, theirs in another.
    theirs = place.folder / "theirs"
    shutil.copytree(place.cache, theirs, symlinks=True)
    place.python("from huggingface_hub import scan_cache_dir\n"
                 f"scan_cache_dir().delete_revisions({second!r}).execute()", env={"HF_HUB_CACHE": str(theirs)})
    removed = place.tgi("rm", "-y", "org/name")
    assert removed.status == 0, removed.err

    def kept(folder):
        return {name: said for name, said in tree(folder).items()
                if name.split("/")[1:2] in (["blobs"], ["refs"], ["snapshots"])}
    assert kept(place.cache) == kept(theirs)
    assert (place.repo("org/name") / "snapshots" / first / "config.json").read_bytes() == files["config.json"]
    names = [m["name"] for m in listed(place).values()]
    assert names == ["demo", f"org/name@{first}"]


def test_a_model_that_is_being_downloaded_by_another_is_listed_as_partial(hub, place):
    hub.model("org/name", small_model())
    place.python("from huggingface_hub import hf_hub_download\nhf_hub_download('org/name', 'config.json')")
    assert listed(place)["org/name"]["state"] == "partial"
