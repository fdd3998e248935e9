// Files that can't be used as they are: damaged, foreign, newer, read-only.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/store/schema.h"
#include "base/store/store.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_all(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string open_error(const std::string& path, Code code) {
  try {
    const Store store = Store::open(path);
    (void)store.models();
    (void)store.jobs(1000);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "";
}

// A store with enough in it to fill several pages, closed.
void make_store(const std::string& path) {
  Store store = Store::open(path);
  for (int i = 0; i < 200; ++i)
    store.put_model({.name = std::string(100, 'x') + std::to_string(i)});
}

// Takes away the right to write, from root as well (by an unprivileged user id), while it lives.
class ReadOnly {
 public:
  explicit ReadOnly(const std::string& folder) : folder_(folder) {
    ::chmod(folder.c_str(), 0555);
    if (::geteuid() == 0) is_other_ = ::seteuid(65534) == 0;
  }
  ~ReadOnly() {
    if (is_other_) (void)!::seteuid(0);
    ::chmod(folder_.c_str(), 0755);
  }
  ReadOnly(const ReadOnly&) = delete;
  ReadOnly& operator=(const ReadOnly&) = delete;

 private:
  const std::string folder_;
  bool is_other_ = false;
};

// A file system of 8 MiB over a folder, while it lives; not there without the right to mount one.
class TinyDisk {
 public:
  explicit TinyDisk(const std::string& folder)
      : folder_(folder), is_there_(::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=8m") == 0) {}
  ~TinyDisk() {
    if (is_there_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  TinyDisk(const TinyDisk&) = delete;
  TinyDisk& operator=(const TinyDisk&) = delete;

  bool is_there() const { return is_there_; }
  void fill() const { write_all(folder_ + "/filling", std::string(size_t{16} << 20, 'x')); }
  void make_room() const { fs::remove(folder_ + "/filling"); }

 private:
  const std::string folder_;
  const bool is_there_;
};

}  // namespace

TEST_CASE("a file that is no database is refused with the way out, and left as it is") {
  const TempFolder folder;
  const std::string path = folder.file("store.db");
  const std::string text(5000, 'z');
  write_all(path, text);
  const std::string message = open_error(path, Code::kInvalidArgument);
  CHECK_THAT(message, Contains(path) && Contains("not a database") && Contains("mv '" + path));
  CHECK(read_all(path) == text);
}

TEST_CASE("a damaged store is refused with the way out, and left as it is") {
  const TempFolder folder;
  const std::string path = folder.file("store.db");
  make_store(path);
  std::string bytes = read_all(path);
  SECTION("cut off") {
    bytes.resize(bytes.size() / 2);
  }
  SECTION("overwritten in the middle") {
    bytes.replace(4096, bytes.size() - 4096, std::string(bytes.size() - 4096, '\x5a'));
  }
  write_all(path, bytes);
  const std::string message = open_error(path, Code::kInvalidArgument);
  CHECK_THAT(message, Contains(path) && Contains("damaged") && Contains("mv '" + path));
  CHECK(read_all(path) == bytes);
}

TEST_CASE("a store of a newer tgi is refused and left as it is") {
  const TempFolder folder;
  const std::string path = folder.file("store.db");
  make_store(path);
  Database(path, Database::Access::kWrite).execute("PRAGMA user_version = 99");
  const std::string bytes = read_all(path);
  const std::string message = open_error(path, Code::kUnsupported);
  CHECK_THAT(message, Contains("newer tgi") && Contains("99") && Contains("TGI_STORE"));
  CHECK(read_all(path) == bytes);
}

TEST_CASE("another program's database is refused and left as it is") {
  const TempFolder folder;
  const std::string path = folder.file("store.db");
  Database(path, Database::Access::kWrite).execute("CREATE TABLE notes (text TEXT)");
  const std::string bytes = read_all(path);
  CHECK_THAT(open_error(path, Code::kInvalidArgument), Contains("another program"));
  CHECK(read_all(path) == bytes);
}

TEST_CASE("a folder in place of the file is refused") {
  const TempFolder folder;
  CHECK_THAT(open_error(folder.path(), Code::kInvalidArgument), Contains("is a folder"));
}

TEST_CASE("an empty file, as a full disk leaves it, becomes a store") {
  const TempFolder folder;
  const std::string path = folder.file("store.db");
  write_all(path, "");
  Store::open(path).put_model({.name = "org/a"});
  CHECK(Store::open(path).models().size() == 1);
}

TEST_CASE(
    "a file that is older, as far as a step goes, is brought up; where it can't be written in "
    "memory") {
  const TempFolder folder;
  const std::string path = folder.file("store.db");
  Database(path, Database::Access::kWrite).execute("PRAGMA application_id = 0x54474953");
  const std::string bytes = read_all(path);
  {
    ::chmod(path.c_str(), 0444);
    const ReadOnly read_only(folder.path());
    const Store store = Store::open(path);
    CHECK(store.is_read_only());
    CHECK(store.models().empty());
  }
  CHECK(read_all(path) == bytes);
  ::chmod(path.c_str(), 0644);
  Store::open(path).put_model({.name = "org/a"});
  CHECK(Database(path, Database::Access::kWrite).pragma("user_version") == newest_schema());
  CHECK(Store::open(path).models().size() == 1);
}

TEST_CASE("a store changed at any place is read or refused") {
  const TempFolder folder;
  const std::string good = folder.file("good.db");
  make_store(good);
  const std::string bytes = read_all(good);
  const std::string path = folder.file("store.db");
  int num_refused = 0;
  for (size_t at = 0; at < bytes.size(); at += at < 200 ? 1 : 397) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    write_all(path, changed);
    fs::remove(path + "-wal");
    fs::remove(path + "-shm");
    try {
      Store store = Store::open(path);
      (void)store.models();
      (void)store.jobs(10);
      (void)store.benchmarks({}, 10);
      store.put_model({.name = "org/a"});
    } catch (const Error& error) {
      ++num_refused;
      CHECK_THAT(error.what(), Contains(path));
      CHECK(error.code() != Code::kInternal);
    }
  }
  CHECK(num_refused > 20);
}

TEST_CASE("the store is for its user only") {
  const TempFolder folder;
  const std::string path = folder.file("state/store.db");
  Store store = Store::open(path);
  store.put_model({.name = "org/a"});
  for (const char* suffix : {"", "-wal"}) {
    struct stat facts {};
    REQUIRE(::stat((path + suffix).c_str(), &facts) == 0);
    CHECK((facts.st_mode & 0777) == 0600);
  }
}

TEST_CASE("a store that can't be written can be read, and says so when written to") {
  const TempFolder folder;
  const std::string path = folder.file("store.db");
  make_store(path);
  ::chmod(path.c_str(), 0444);
  const ReadOnly read_only(folder.path());
  Store store = Store::open(path);
  CHECK(store.is_read_only());
  CHECK(store.models().size() == 200);
  store.touch_model(store.models().front().name);
  CHECK_THROWS_WITH(store.put_model({.name = "org/a"}), Contains(path) && Contains("permissions"));
  CHECK_THROWS_AS(store.begin_job("download", "x", 1), Error);
}

TEST_CASE("a store that is not there and can't be made is empty") {
  const TempFolder folder;
  const ReadOnly read_only(folder.path());
  const Store store = Store::open(folder.file("state/tgi/store.db"));
  CHECK(store.is_read_only());
  CHECK(store.models().empty());
  CHECK(store.jobs(10).empty());
  CHECK_FALSE(fs::exists(folder.file("state")));
}

TEST_CASE("on a full disk the store can be read, and is written to when there is room again") {
  const TempFolder folder;
  const TinyDisk disk(folder.path());
  if (!disk.is_there()) {
    WARN("skipped: no file system can be mounted here");
    return;
  }
  const std::string path = folder.file("store.db");
  make_store(path);
  disk.fill();
  {
    Store store = Store::open(path);
    CHECK(store.is_read_only());
    CHECK(store.models().size() == 200);
    CHECK_THROWS_WITH(store.remove_model(store.models().front().name),
                      Contains(path) && Contains("the disk is full"));
  }
  CHECK(Store::open(folder.file("other/store.db")).models().empty());
  disk.make_room();
  Store store = Store::open(path);
  CHECK_FALSE(store.is_read_only());
  CHECK(store.remove_model(store.models().front().name));
}

TEST_CASE("names with quotes and question marks in the path are paths") {
  const TempFolder folder;
  const std::string path = folder.file("it's 100%?#.db");
  Store::open(path).put_model({.name = "org/a"});
  CHECK(fs::exists(path));
  CHECK(Store::open(path).models().size() == 1);
}

TEST_CASE("TGI_STORE names the file") {
  ::setenv("TGI_STORE", "/somewhere/else.db", 1);
  CHECK(default_store_path() == "/somewhere/else.db");
  ::unsetenv("TGI_STORE");
  CHECK_THAT(default_store_path(), Contains("tgi/store.db"));
}

}  // namespace tgi
