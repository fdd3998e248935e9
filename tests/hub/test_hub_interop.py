"""One cache for tgi and huggingface_hub: each reads what the other wrote, both at once, and after kill -9."""

import hashlib
import json
import os
import random
import time

import pytest

from conftest import CHOSEN, check_snapshot, safetensors, small_model

MB = 1 << 20


def test_huggingface_hub_reads_what_we_wrote(hub, place):
    files = small_model()
    commit = hub.model("org/name").commit(files)
    path = place.download("org/name").path
    said = json.loads(place.python(f"""
import json
from huggingface_hub import hf_hub_download, scan_cache_dir, snapshot_download, try_to_load_from_cache, get_cached_repo_tree
from huggingface_hub.file_download import _CACHED_NO_EXIST
repos = list(scan_cache_dir().repos)
print(json.dumps(dict(
    file=hf_hub_download("org/name", "model.safetensors", local_files_only=True),
    cached=try_to_load_from_cache("org/name", "config.json"),
    absent=try_to_load_from_cache("org/name", "generation_config.json") is _CACHED_NO_EXIST,
    unknown=try_to_load_from_cache("org/name", "never_heard_of.json"),
    snapshot=snapshot_download("org/name", local_files_only=True, allow_patterns={CHOSEN!r}),
    tree=sorted(f.path for f in get_cached_repo_tree("org/name")),
    warnings=[str(w) for w in scan_cache_dir().warnings],
    repos=[r.repo_id for r in repos],
    size=repos[0].size_on_disk,
    refs=[sorted(r.refs) for r in repos[0].revisions],
    commits=[r.commit_hash for r in repos[0].revisions])))
""", {"HF_HUB_OFFLINE": "1"}))
    assert said["file"] == str(path / "model.safetensors")
    assert said["cached"] == str(path / "config.json")
    assert said["absent"] is True and said["unknown"] is None
    assert said["snapshot"] == str(path)
    assert said["tree"] == sorted(files)
    assert said["warnings"] == [] and said["repos"] == ["org/name"]
    assert said["refs"] == [["main"]] and said["commits"] == [commit]
    assert said["size"] == sum(len(files[name]) for name in CHOSEN)


def test_huggingface_hub_fetches_nothing_of_ours_again(hub, place):
    files = small_model()
    hub.model("org/name", files)
    path = place.download("org/name").path
    before = len(hub.asked("storage"))
    assert place.python(f"""
from huggingface_hub import snapshot_download
print(snapshot_download("org/name", allow_patterns={CHOSEN!r}))""") == str(path)
    assert len(hub.asked("storage")) == before
    # The rest comes beside ours.
    place.python('from huggingface_hub import snapshot_download; snapshot_download("org/name")')
    check_snapshot(path, files, files)


def test_we_read_what_huggingface_hub_wrote(hub, place):
    files = small_model()
    hub.model("org/name", files)
    path = place.python('from huggingface_hub import snapshot_download; print(snapshot_download("org/name"))')
    before = len(hub.requests)
    assert str(place.download("org/name", "--offline").path) == path
    assert len(hub.requests) == before
    assert str(place.download("org/name").path) == path
    assert not hub.asked(match="resolve")[len(files) * 3:] and len(hub.asked("storage")) <= 2


def test_we_read_an_older_cache_without_a_list_of_files(hub, place):
    hub.model("org/name", small_model())
    path = place.python('from huggingface_hub import snapshot_download; print(snapshot_download("org/name"))')
    for tree in place.repo("org/name").glob("trees/*"):
        tree.unlink()
    assert str(place.download("org/name", "--offline").path) == path
    os.remove(os.path.join(path, "model.safetensors"))
    place.download("org/name", "--offline").refused(4)


def test_we_complete_what_huggingface_hub_began(hub, place):
    files = small_model()
    hub.model("org/name", files)
    path = place.python('from huggingface_hub import hf_hub_download; print(hf_hub_download("org/name", "config.json"))')
    place.download("org/name", "--offline").refused(4)
    ran = place.download("org/name")
    assert str(ran.path / "config.json") == path
    check_snapshot(ran.path, files)


def test_a_cache_without_links(hub, place):
    files = small_model()
    hub.model("org/name", files)
    path = place.python('from huggingface_hub import snapshot_download; print(snapshot_download("org/name"))', {"HF_HUB_DISABLE_SYMLINKS": "1"})
    before = len(hub.asked("storage"))
    assert str(place.download("org/name").path) == path
    assert len(hub.asked("storage")) == before


def test_two_of_ours_and_one_of_theirs_at_once(hub, place):
    files = small_model(24 * MB)
    commit = hub.model("org/name").commit(files)
    hub.fault("slow", "storage ", delay=0.005, piece=256 << 10)
    import subprocess
    import sys
    env = {**place.env, "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    theirs = subprocess.Popen([sys.executable, "-c", f"""
from huggingface_hub import snapshot_download
print(snapshot_download("org/name", allow_patterns={CHOSEN!r}))"""], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    ours = [place.popen("download-weights", "org/name") for _ in range(2)]
    snapshot = str(place.repo("org/name") / "snapshots" / commit)
    for process in [*ours, theirs]:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert out.strip() == snapshot
    check_snapshot(place.repo("org/name") / "snapshots" / commit, files)
    assert place.leftovers("org/name") == []
    # Each blob came once: the ranges asked for add up to one file.
    sha = hashlib.sha256(files["model.safetensors"]).hexdigest()
    whole = len(files["model.safetensors"])
    total = 0
    for asked in hub.asked("storage", "GET", sha):
        if "Range" in asked.headers:
            first, last = (int(x) for x in asked.headers["Range"][6:].split("-"))
            total += last - first + 1
        else:
            total += whole
    assert total == whole


def test_a_blob_that_another_process_downloads_is_waited_for(hub, place):
    files = small_model(12 * MB)
    hub.model("org/name", files)
    sha = hashlib.sha256(files["model.safetensors"]).hexdigest()
    lock = place.cache / ".locks/models--org--name" / f"{sha}.lock"
    lock.parent.mkdir(parents=True)
    import fcntl
    with open(lock, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = place.popen("download-weights", "org/name")
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and not (place.repo("org/name") / "blobs").exists():
            time.sleep(0.02)
        time.sleep(0.5)
        assert process.poll() is None and not hub.asked("storage", match=sha)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0 and "another process downloads it" in err
    check_snapshot(place.download("org/name").path, files)


def test_kill_9_at_fifty_moments(hub, place):
    """Each time the process is killed, then the next one goes on; what lies there at the end is right, byte for byte, and
    fewer bytes came than fifty downloads take."""
    rng = random.Random(7)
    files = small_model(40 * MB)
    commit = hub.model("org/name").commit(files)
    hub.fault("slow", "storage ", delay=0.004, piece=128 << 10)
    snapshot = place.repo("org/name") / "snapshots" / commit
    kills = rounds = kept = resumed = 0
    journal = place.repo("org/name") / "blobs" / (hashlib.sha256(files["model.safetensors"]).hexdigest() + ".tgi.incomplete.journal")
    while kills < 50:
        before = len(hub.requests)
        process = place.popen("download-weights", "org/name", "--quiet")
        if rng.random() < 0.8:  # from the first byte of the large file on; else while it begins
            deadline = time.monotonic() + 5
            while process.poll() is None and time.monotonic() < deadline and not any(a.host == "storage" for a in hub.requests[before:]):
                time.sleep(0.005)
        time.sleep(rng.uniform(0.01, 0.3))
        process.kill()
        process.communicate()
        kills += process.returncode == -9
        # Nothing is half there: no snapshot, or one that is whole.
        if snapshot.exists() and process.returncode == -9:
            for link in snapshot.iterdir():
                assert hashlib.sha256(link.read_bytes()).hexdigest() == hashlib.sha256(files[link.name]).hexdigest()
        assert not list(place.repo("org/name").rglob("*.tmp"))
        # What is complete stays complete.
        now = journal.read_bytes().count(b"\n") - 1 if journal.exists() and not snapshot.exists() else 0
        if kept and now:
            assert now >= kept
            resumed += 1
        kept = now
        if snapshot.exists() and len(list(snapshot.iterdir())) == len(CHOSEN):
            check_snapshot(snapshot, files)
            rounds, kept = rounds + 1, 0
            import shutil
            shutil.rmtree(place.repo("org/name"))
    check_snapshot(place.download("org/name").path, files)
    assert place.leftovers("org/name") == []
    assert resumed >= 10, (resumed, rounds)
