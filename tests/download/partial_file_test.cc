#include "cmd/download/partial_file.h"

#include <fstream>
#include <random>
#include <vector>

#include "base/error.h"
#include "cmd/download/content_hash.h"
#include "cmd/download/disk.h"
#include "cmd/download/file_lock.h"
#include "cmd/download/hub_cache.h"
#include "cmd/download/progress.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace tgi::download {
namespace {

void put(const std::string& path, std::string_view text) {
  write_whole(path, text, path + ".tmp");
}

std::vector<std::byte> noise(size_t size) {
  std::minstd_rand random(7);
  std::vector<std::byte> out(size);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

uint64_t sum_of(std::span<const std::byte> bytes) {
  ChunkSum sum;
  sum.add(bytes);
  return sum.value();
}

constexpr int64_t kSize = 3 * kChunkBytes + 100;

TEST_CASE("chunk sums don't depend on how the bytes come, and on every byte") {
  const std::vector<std::byte> bytes = noise(1000);
  const uint64_t whole = sum_of(bytes);
  for (const size_t piece : {1, 3, 31, 32, 33, 999}) {
    ChunkSum sum;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      sum.add(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    }
    CHECK(sum.value() == whole);
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::vector<std::byte> other = bytes;
    other[at] ^= std::byte{1};
    CHECK(sum_of(other) != whole);
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  CHECK(sum_of(longer) != whole);
  CHECK(sum_of(std::vector<std::byte>(10)) != sum_of(std::vector<std::byte>(11)));
}

TEST_CASE("a partial file goes on where it was") {
  TempFolder folder;
  const std::string path = folder.file("x.tgi.incomplete");
  {
    PartialFile part(path, kSize, "hash");
    CHECK(part.num_chunks() == 4);
    CHECK(part.bytes_of(3) == 100);
    part.complete(2, 5);
    part.complete(0, 7);
  }
  CHECK(PartialFile::kept_bytes(path) == 2 * kChunkBytes);
  PartialFile part(path, kSize, "hash");
  CHECK(part.is_complete(0));
  CHECK_FALSE(part.is_complete(1));
  CHECK(part.sum_of(2) == 5);
  CHECK_FALSE(part.is_new(0));
  CHECK(part.num_complete_bytes() == 2 * kChunkBytes);
}

TEST_CASE("a partial file of other content begins anew") {
  TempFolder folder;
  const std::string path = folder.file("x");
  PartialFile(path, kSize, "hash").complete(0, 7);
  CHECK_FALSE(PartialFile(path, kSize, "other").is_complete(0));
  PartialFile(path, kSize, "hash").complete(0, 7);
  CHECK_FALSE(PartialFile(path, kSize + 1, "hash").is_complete(0));
}

// kill -9 at any byte of the journal: what is whole counts, and the next line is whole again.
TEST_CASE("a journal may end anywhere") {
  TempFolder folder;
  const std::string path = folder.file("x");
  {
    PartialFile part(path, kSize, "hash");
    for (const int64_t chunk : {3, 1, 0}) part.complete(chunk, static_cast<uint64_t>(chunk) + 1);
  }
  const std::string whole = read_whole(path + ".journal");
  for (size_t size = 0; size <= whole.size(); ++size) {
    put(path + ".journal", whole.substr(0, size));
    {
      PartialFile part(path, kSize, "hash");
      for (const int64_t chunk : {0, 1, 3}) {
        const std::string line =
            std::to_string(chunk) + " 000000000000000" + std::to_string(chunk + 1) + "\n";
        const size_t at = whole.find("\n" + line);
        CHECK(part.is_complete(chunk) == (at != std::string::npos && at + 1 + line.size() <= size));
      }
      CHECK_FALSE(part.is_complete(2));
      part.complete(2, 9);
    }
    CHECK(PartialFile(path, kSize, "hash").is_complete(2));
  }
}

TEST_CASE("a published file is whole and its journal is gone") {
  TempFolder folder;
  const std::string path = folder.file("x");
  const std::vector<std::byte> bytes = noise(1000);
  PartialFile part(path, 1000, "hash");
  part.write(bytes, 0);
  part.complete(0, sum_of(bytes));
  part.publish(folder.file("target"));
  CHECK(size_of(folder.file("target")) == 1000);
  CHECK_FALSE(exists(path));
  CHECK_FALSE(exists(path + ".journal"));
}

TEST_CASE("the cache's links are relative and replace wrong ones") {
  TempFolder folder;
  const HubCache cache(folder.path(), HubCache::folder_name("org/name"));
  const std::string commit(40, 'c');
  cache.prepare();
  RemoteFile file;
  file.path = "a/b.json";
  file.blob = "blob1";
  put(cache.blob("blob1"), "one");
  put(cache.blob("blob2"), "two");
  cache.link(commit, file);
  CHECK(read_whole(cache.snapshot(commit) + "/a/b.json") == "one");
  CHECK(std::filesystem::read_symlink(cache.snapshot(commit) + "/a/b.json") ==
        "../../../blobs/blob1");
  file.blob = "blob2";
  cache.link(commit, file);
  CHECK(read_whole(cache.snapshot(commit) + "/a/b.json") == "two");
  CHECK_FALSE(cache.commit_of("main"));
  cache.set_ref("refs/pr/1", commit);
  CHECK(cache.commit_of("refs/pr/1") == commit);
  CHECK(cache.commit_of(commit) == commit);
  put(folder.file("models--org--name/refs/main"), "../../evil");
  CHECK_FALSE(cache.commit_of("main"));
}

TEST_CASE("the cache's list of files is read back, and a broken one is none") {
  TempFolder folder;
  const HubCache cache(folder.path(), HubCache::folder_name("org/name"));
  const std::string commit(40, 'c');
  CHECK_FALSE(cache.read_tree(commit));
  RemoteFile large;
  large.path = "m";
  large.size = 7;
  large.sha256 = large.blob = std::string(64, 'a');
  large.blob_id = std::string(40, 'b');
  RemoteFile small;
  small.path = "s";
  small.size = 3;
  small.git_sha1 = small.blob = small.blob_id = std::string(40, 'd');
  cache.write_tree(commit, {large, small});
  const auto files = cache.read_tree(commit);
  REQUIRE(files);
  REQUIRE(files->size() == 2);
  CHECK((*files)[0].sha256 == large.sha256);
  CHECK((*files)[0].blob_id == large.blob_id);
  CHECK((*files)[1].blob == small.blob);
  for (const char* bad :
       {"", "{", R"({"format_version": 2, "files": {}})",
        R"({"format_version": 1, "files": {"../x": {"size": 1, "blob_id": "a"}}})"}) {
    put(folder.file("models--org--name/trees/" + commit + ".json"), bad);
    CHECK_FALSE(cache.read_tree(commit));
  }
}

TEST_CASE("a lock is one process's, and free again when it is given back") {
  TempFolder folder;
  auto lock = FileLock::try_lock(folder.file("a/b.lock"));
  REQUIRE(lock);
  CHECK_FALSE(FileLock::try_lock(folder.file("a/b.lock")));
  lock.reset();
  CHECK(FileLock::try_lock(folder.file("a/b.lock")));
}

TEST_CASE("hashes are those of the tools") {
  CHECK(sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  RemoteFile file;
  file.size = 6;
  file.git_sha1 =
      "ce013625030ba8dba906f756967f9e9ca394464a";  // printf 'hello\n' | git hash-object --stdin
  ContentHash hash(file);
  hash.add(std::as_bytes(std::span("hello\n", 6)));
  CHECK(hash.finish() == file.git_sha1);
}

TEST_CASE("sizes and durations read well") {
  CHECK(format_size(0) == "0 B");
  CHECK(format_size(999) == "999 B");
  CHECK(format_size(1000) == "1.00 kB");
  CHECK(format_size(12'340'000) == "12.3 MB");
  CHECK(format_size(999'600'000) == "1.00 GB");
  CHECK(format_size(5'000'000'000'000'000) == "5000 TB");
  CHECK(format_duration(0.2) == "1 s");
  CHECK(format_duration(61) == "1:01");
  CHECK(format_duration(3723) == "1:02:03");
}

TEST_CASE("speed is that of the last seconds") {
  SpeedMeter meter;
  for (int second = 0; second <= 100; ++second)
    meter.add(second, second < 50 ? second * 100 : 5000);
  CHECK(meter.bytes_per_s() == 0);
  meter.add(101, 6000);
  CHECK(meter.bytes_per_s() == Approx(100).epsilon(0.2));
}

TEST_CASE("progress off a terminal: what was said, and what is done") {
  std::string text;
  Progress progress(ProgressKind::kLines, [&](const std::string& lines) { text += lines; });
  RemoteFile file;
  file.path = "model.safetensors";
  file.size = 1000;
  progress.on_plan("org/name", {file});
  progress.on_begin(0, 500);
  progress.tick();
  CHECK(text ==
        "org/name: 1 files, 1.00 kB\nmodel.safetensors: 500 B of 1.00 kB were downloaded before\n");
  progress.on_bytes(0, 500);
  progress.on_done(0, false);
  progress.finish();
  CHECK(text.find("model.safetensors") != std::string::npos);
  CHECK(text.ends_with("done\n"));
  CHECK(text.find('\033') == std::string::npos);
}

TEST_CASE("progress on a terminal: a line a file, drawn over, with total and time left") {
  std::string text;
  Progress progress(ProgressKind::kTerminal, [&](const std::string& lines) { text += lines; });
  RemoteFile file;
  file.path = "model.safetensors";
  file.size = 1000;
  progress.on_plan("org/name", {file, file});
  progress.on_begin(0, 0);
  progress.on_bytes(0, 250);
  progress.tick();
  CHECK(text.find("25 %  250 B of 1.00 kB") != std::string::npos);
  CHECK(text.find("0 of 2 files, 250 B of 2.00 kB (12 %)") != std::string::npos);
  text.clear();
  progress.on_bytes(0, 250);
  progress.tick();
  CHECK(text.starts_with("\033[2A\r\033[J"));
  CHECK(text.find("left") != std::string::npos);
  text.clear();
  progress.finish();
  CHECK(text == "\033[2A\r\033[J");
}

}  // namespace
}  // namespace tgi::download
