"""What goes wrong between a hub and a disk, and what is left then."""

import hashlib
import os
import subprocess
import time

import pytest

from conftest import check_snapshot, noise, safetensors, small_model

MB = 1 << 20


# --- refusals

def test_an_unknown_model(hub, place):
    place.download("org/name").refused(4, "no model org/name", "HF_TOKEN")
    assert not place.repo("org/name").exists()
    place.download("org/name", env={"HF_TOKEN": "hf_good"}).refused(4, "no model org/name", "token of HF_TOKEN may read it")


def test_an_unknown_revision(hub, place):
    hub.model("org/name", small_model())
    place.download("org/name@v9").refused(4, "no revision v9")


def test_a_gated_model_says_what_to_do(hub, place):
    hub.model("org/name", small_model()).gated = True
    place.download("org/name").refused(3, "gated", f"{hub.url}/org/name", "HF_TOKEN")
    place.download("org/name", env={"HF_TOKEN": "hf_other"}).refused(3, "gated", "ask for access")
    assert place.download("org/name", env={"HF_TOKEN": "hf_good"}).status == 0


def test_a_refused_token(hub, place):
    hub.model("org/name", small_model())
    place.download("org/name", env={"HF_TOKEN": "hf_bad"}).refused(3, "token of HF_TOKEN was refused", "settings/tokens")
    place.download("org/name", "--token", "hf_bad").refused(3, "--token")


def test_a_private_model_needs_the_token_wherever_it_is_kept(hub, place):
    files = small_model()
    hub.model("org/name", files).private = True
    place.download("org/name").refused(4, "private")
    token = place.hf_home / "token"
    token.parent.mkdir(parents=True)
    token.write_text("hf_good\n")
    place.download("org/name", env={"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}).refused(4, "private")
    check_snapshot(place.download("org/name").path, files)


def test_a_token_that_cannot_be_sent(hub, place):
    place.download("org/name", env={"HF_TOKEN": "hf_\nX-Other: header"}).refused(3, "HF_TOKEN")
    assert not hub.requests


def test_the_token_never_reaches_the_storage_host(hub, place):
    files = small_model(20 * MB)
    hub.model("org/name", files).private = True
    check_snapshot(place.download("org/name", env={"HF_TOKEN": "hf_good"}).path, files)
    to_hub, to_storage = hub.asked("hub"), hub.asked("storage")
    assert to_storage and all("Authorization" not in a.headers for a in to_storage)
    assert all(a.headers.get("Authorization") == "Bearer hf_good" for a in to_hub)


# --- the server is busy or broken

def test_retry_after_is_kept_to(hub, place):
    files = small_model()
    hub.model("org/name", files)
    fault = hub.fault("status", "hub .*/tree/", times=1, status=429, headers={"Retry-After": "2"})
    check_snapshot(place.download("org/name").path, files)
    assert fault.used == 2
    asked = hub.asked(match="/tree/")
    assert asked[1].when - asked[0].when >= 2


def test_a_long_retry_after_ends_it(hub, place):
    hub.model("org/name", small_model())
    hub.fault("status", "/tree/", status=429, headers={"Retry-After": "3600"})
    place.download("org/name").refused(7, "3600 s")


def test_errors_of_the_server_pass(hub, place):
    files = small_model(20 * MB)
    hub.model("org/name", files)
    for status in (500, 502, 503, 504):
        hub.fault("status", "storage ", times=1, skip=status - 500, status=status)
    check_snapshot(place.download("org/name").path, files)


def test_a_server_that_stays_broken(hub, place):
    hub.model("org/name", small_model())
    hub.fault("status", "storage ", status=503)
    place.download("org/name").refused(7, "503", "5 tries")
    assert not (place.repo("org/name") / "snapshots").exists()
    hub.faults.clear()
    assert place.download("org/name").status == 0


def test_cut_answers_go_on_where_they_broke(hub, place):
    files = small_model(24 * MB)
    hub.model("org/name", files)
    hub.fault("cut", "storage ", times=12, at=700_000)
    check_snapshot(place.download("org/name").path, files)
    begins = [int(a.headers["Range"][6:].split("-")[0]) for a in hub.asked("storage", "GET") if "Range" in a.headers]
    assert sum(b % (4 * MB) == 700_000 for b in begins) >= 6  # the same range, from the byte where it broke


def test_small_files_are_cut_too(hub, place):
    files = small_model()
    hub.model("org/name", files)
    hub.fault("cut", "resolve-cache.*tokenizer_config", times=2, at=1)
    check_snapshot(place.download("org/name").path, files)


def test_a_stalled_answer_is_given_up(hub, place):
    files = small_model(8 * MB)
    hub.model("org/name", files)
    hub.fault("stall", "storage ", times=1, at=300_000)
    check_snapshot(place.download("org/name").path, files)


def test_a_server_without_ranges(hub, place):
    files = small_model(24 * MB)
    hub.model("org/name", files)
    hub.fault("norange", "storage ")
    hub.fault("cut", "storage ", times=3, skip=2, at=5 * MB)
    check_snapshot(place.download("org/name").path, files)


def test_signed_addresses_that_run_out_are_asked_for_again(hub, place):
    files = small_model(40 * MB)
    hub.model("org/name", files)
    hub.signed_uses = 6
    check_snapshot(place.download("org/name").path, files)
    assert len(hub.asked("hub", match="resolve/.*/model.safetensors")) > 1


def test_another_range_than_asked_for(hub, place):
    files = small_model(24 * MB)
    hub.model("org/name", files)
    hub.fault("misrange", "storage ", times=3)
    check_snapshot(place.download("org/name").path, files)


# --- wrong bytes

def test_a_corrupt_range_is_found_and_replaced(hub, place):
    files = small_model(24 * MB)
    hub.model("org/name", files)
    fault = hub.fault("corrupt", "storage ", times=10**9, at=9 * MB + 17)
    served = []

    def heal(asked):  # the first answer that covers the byte is corrupt, later ones are right
        if "Range" in asked.headers:
            first, last = (int(x) for x in asked.headers["Range"][6:].split("-"))
            if first <= fault.at <= last:
                served.append(asked)
            if len(served) > 1:
                fault.times = 0
    hub.on_request = heal
    ran = place.download("org/name")
    check_snapshot(ran.path, files)
    assert "were wrong and came again" in ran.err
    assert len(served) == 2


def test_a_server_whose_bytes_are_not_what_it_lists(hub, place):
    files = small_model(12 * MB)
    hub.model("org/name", files)
    hub.fault("corrupt", "storage ", at=5 * MB)
    right = hashlib.sha256(files["model.safetensors"]).hexdigest()
    place.download("org/name").refused(8, "sha256", right, "twice")
    assert not (place.repo("org/name") / "snapshots").exists()
    assert not [name for name in place.leftovers("org/name") if name.startswith(right)]
    assert not (place.repo("org/name") / "blobs" / right).exists()


def test_small_files_are_checked_too(hub, place):
    hub.model("org/name", small_model())
    hub.fault("corrupt", "resolve-cache.*/config.json", at=3)
    place.download("org/name").refused(8, "config.json", "git's sha1")


@pytest.mark.parametrize("kind", ["short", "extra"])
def test_wrong_sizes(hub, place, kind):
    hub.model("org/name", small_model(12 * MB))
    hub.fault(kind, "storage ", at=1000)
    ran = place.download("org/name")
    assert ran.status == 8 and ran.out == ""
    assert not (place.repo("org/name") / "snapshots").exists()


def test_a_wrong_size_in_the_list(hub, place):
    model = hub.model("org/name", small_model())
    file = model.commits[model.resolve("main")]["config.json"]
    entry = file.entry
    file.entry = lambda path: {**entry(path), "size": 7}
    place.download("org/name").refused(8, "config.json", "expected 7 bytes", "has 40")


# --- what moves

def test_a_branch_that_moves_does_not_mix(hub, place):
    model = hub.model("org/name")
    first, second = small_model(12 * MB, seed=1), small_model(12 * MB, seed=2)
    old = model.commit(first)

    def move(asked):
        if "/tree/" in asked.path:
            model.commit(second)
    hub.on_request = move
    path = place.download("org/name").path
    assert path.name == old
    check_snapshot(path, first)


def test_a_file_that_changes_meanwhile_is_noticed(hub, place):
    hub.model("org/name", small_model(24 * MB))
    hub.fault("etag", "storage ", skip=3)
    place.download("org/name").refused(8, "model.safetensors changed", "ETag")


def test_another_etag_than_listed(hub, place):
    hub.model("org/name", small_model(24 * MB))
    hub.fault("etag", "hub .*/model.safetensors")
    place.download("org/name").refused(8, "model.safetensors changed", "run the same command again")


# --- names that would leave the cache

@pytest.mark.parametrize("name", ["../../../evil", "/etc/evil", "a/../../evil", "..", "a//b", "a\\..\\b", "C:/x", "bad\nname", "x" * 300])
def test_names_that_leave_the_folder(hub, place, name):
    hub.model("org/name", {**small_model(), name: b"evil"})
    place.download("org/name").refused(3, "the server lists a file")
    assert not place.repo("org/name").exists()
    assert not list(place.folder.rglob("*evil*"))


@pytest.mark.parametrize("sha", ["../../x", "", "A" * 40, "0" * 39])
def test_a_commit_that_is_none(hub, place, sha):
    model = hub.model("org/name", small_model())
    model.commits[sha] = model.commits[model.refs["main"]]
    model.refs["main"] = sha
    assert place.download("org/name").status == 3
    assert not place.repo("org/name").exists()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"sha": 3}', b"<html>", b"\xff\xfe", b"[" * 100000])
def test_answers_that_are_no_json(hub, place, body):
    hub.model("org/name", small_model())
    hub.fault("status", "/revision/", status=200, body=body)
    ran = place.download("org/name")
    assert ran.status == 3 and len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("where", ["ftp://127.0.0.1/x", "file:///etc/passwd", "gopher://127.0.0.1/x", "/redirected"])
def test_redirects_to_nowhere(hub, place, where):
    hub.model("org/name", small_model())
    hub.fault("status", "storage |/redirected|resolve/.*/model.safetensors", status=302, headers={"Location": where})
    ran = place.download("org/name")
    assert ran.status != 0 and ran.out == ""


# --- the disk

def interrupted(hub, place):
    """A download that ended after some ranges."""
    hub.fault("status", "storage ", skip=4, status=404)
    hub.on_request = lambda asked: time.sleep(0.2 if len(hub.asked("storage")) > 4 else 0)
    place.download("org/name").refused(8, "model.safetensors", "404")
    hub.on_request = None
    hub.faults.clear()


def mounted(place, size):
    """A small disk of its own, or a skip where this user may not mount."""
    folder = place.folder / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    if made.returncode != 0:
        pytest.skip("this user may not mount")
    return folder


def test_too_little_space_is_said_before(hub, place):
    disk = mounted(place, "16m")
    try:
        hub.model("org/name", small_model(20 * MB))
        place.download("org/name", "--cache-dir", disk).refused(6, "21.", "16.", "--cache-dir")
        assert not hub.asked(match="resolve")
    finally:
        subprocess.run(["umount", "-l", str(disk)])


def test_a_disk_that_fills_up_keeps_what_there_is(hub, place):
    disk = mounted(place, "48m")
    try:
        files = small_model(20 * MB)
        hub.model("org/name", files)
        filler = disk / "other"

        def fill(asked):
            if asked.host == "storage" and not filler.exists():
                filler.write_bytes(b"x" * (34 * MB))
        hub.on_request = fill
        ran = place.download("org/name", "--cache-dir", disk).refused(6, "No space left", "are kept")
        filler.unlink()
        hub.on_request = None
        before = len(hub.asked("storage", "GET"))
        ran = place.download("org/name", "--cache-dir", disk)
        check_snapshot(ran.path, files)
        assert "were downloaded before" in ran.err
        assert before > 0
    finally:
        subprocess.run(["umount", "-l", str(disk)])


def test_a_read_only_cache(hub, place):
    disk = mounted(place, "64m")
    try:
        files = small_model()
        hub.model("org/name", files)
        hub.model("org/other", small_model(seed=2))
        path = place.download("org/name", "--cache-dir", disk).path
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert place.download("org/name", "--cache-dir", disk).path == path  # all is there: nothing to write
        place.download("org/other", "--cache-dir", disk).refused(3, "Read-only file system", "--cache-dir")
    finally:
        subprocess.run(["umount", "-l", str(disk)])


def test_ctrl_c_keeps_what_there_is(hub, place):
    files = small_model(96 * MB)  # several rounds of chunks: one is noted while others are on their way
    hub.model("org/name", files)
    slow = hub.fault("slow", "storage ", delay=0.03)
    process = place.popen("download-weights", "org/name")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not any(p.stat().st_size > 100 for p in place.folder.rglob("*.journal")):
        time.sleep(0.05)
    process.send_signal(2)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130 and out == ""
    assert "are kept, the same command goes on from there" in err
    slow.times = 0
    ran = place.download("org/name")
    check_snapshot(ran.path, files)
    assert "were downloaded before" in ran.err


def test_what_the_disk_lost_comes_again(hub, place):
    files = small_model(24 * MB)
    hub.model("org/name", files)
    interrupted(hub, place)
    partial = next(place.folder.rglob("*.tgi.incomplete"))
    lines = [l for l in open(str(partial) + ".journal").read().splitlines()[1:]]
    chunk = int(lines[0].split()[0])
    with open(partial, "r+b") as f:  # as after a power cut: the journal has it, the disk has not
        f.seek(chunk * 4 * MB + 1000)
        f.write(bytes(4096))
    ran = place.download("org/name")
    assert "are not on the disk as they came" in ran.err
    check_snapshot(ran.path, files)


@pytest.mark.parametrize("damage", [b"", b"nonsense\n", b"tgi-journal 1 999 4194304 x\n0 0\n", b"\x00" * 500])
def test_a_broken_journal_begins_anew(hub, place, damage):
    files = small_model(24 * MB)
    hub.model("org/name", files)
    interrupted(hub, place)
    journal = next(place.folder.rglob("*.journal"))
    journal.write_bytes(damage)
    check_snapshot(place.download("org/name").path, files)
