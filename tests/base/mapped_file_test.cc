// Files of models that are no files, and files that change while they are read.
#include "base/files/mapped_file.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/files/file_source.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLarge = size_t{40} << 20;  // more than a folder's source copies

std::string make_file(const TempFolder& folder, size_t size) {
  const std::string path = folder.file("weights");
  std::ofstream(path) << "begin";
  fs::resize_file(path, size);
  return path;
}

int64_t sum(std::span<const std::byte> bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}, [](int64_t total, std::byte byte) {
    return total + std::to_integer<int64_t>(byte);
  });
}

template <typename Fn>
std::string error_of(Code code, Fn fn) {
  try {
    fn();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a mapped file that is cut short gives zeros, and says so") {
  const TempFolder folder;
  const std::string path = make_file(folder, 1 << 20);
  const MappedFile other(make_file(folder, 1 << 20));
  const MappedFile file(path);
  const int64_t whole = sum(file.bytes());
  CHECK(whole > 0);
  CHECK_NOTHROW(file.check_intact());
  fs::resize_file(path, 5000);
  CHECK_NOTHROW(file.check_intact());  // nothing was read since
  CHECK(sum(file.bytes()) == whole);
  CHECK_THAT(error_of(Code::kInvalidArgument, [&] { file.check_intact(); }),
             Catch::Contains(path) && Catch::Contains("1048576 bytes") &&
                 Catch::Contains("was cut to 5000"));
  // A mapping that comes after it begins anew.
  const MappedFile next(path);
  CHECK(next.bytes().size() == 5000);
  CHECK(sum(next.bytes()) == whole);
  CHECK_NOTHROW(next.check_intact());
}

TEST_CASE("many threads may read a file while it is cut") {
  const TempFolder folder;
  const std::string path = make_file(folder, kLarge);
  const MappedFile file(path);
  std::atomic<int64_t> total = 0;  // or nothing would be read
  std::vector<std::jthread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      for (int round = 0; round < 3; ++round) total += sum(file.bytes());
    });
  }
  fs::resize_file(path, 0);
  readers.clear();
  CHECK(total + sum(file.bytes()) >= 0);
  CHECK_THAT(error_of(Code::kInvalidArgument, [&] { file.check_intact(); }),
             Catch::Contains("was cut to 0"));
}

TEST_CASE("a bus error that is nobody's still ends the process") {
  const TempFolder folder;
  const MappedFile file(make_file(folder, 4096));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::raise(SIGBUS);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  CHECK(status != 0);  // a sanitizer ends it in its own way
#else
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGBUS);
#endif
}

TEST_CASE("what is made of files that were cut meanwhile is not trusted, nor is the error") {
  const TempFolder folder;
  const std::string path = make_file(folder, kLarge);
  const auto files = open_folder(folder.path());
  const auto read = [&](bool throws) {
    return made_of_intact(*files, [&] {
      const int64_t total = sum(files->require("weights"));
      if (throws) throw Error(Code::kUnsupported, "zeros");
      return total;
    });
  };
  CHECK(read(false) > 0);
  CHECK(error_of(Code::kUnsupported, [&] { read(true); }) == "zeros");
  fs::resize_file(path, 10);
  CHECK_THAT(error_of(Code::kInvalidArgument, [&] { read(false); }), Catch::Contains(path));
  CHECK_THAT(error_of(Code::kInvalidArgument, [&] { read(true); }),
             Catch::Contains("was cut to 10"));
}

TEST_CASE("a small file of a folder is read once, whatever happens to it then") {
  const TempFolder folder;
  std::ofstream(folder.file("config.json")) << "{}";
  const auto files = open_folder(folder.path());
  CHECK(files->require_text("config.json") == "{}");
  fs::resize_file(folder.file("config.json"), 0);
  CHECK(files->require_text("config.json") == "{}");
  CHECK_NOTHROW(files->check_intact());
  files->release(files->require("config.json"));
  CHECK(files->require_text("config.json") == "{}");
}

TEST_CASE("a pointer of git-lfs is told from the file that it stands for") {
  const TempFolder folder;
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n";
  std::ofstream(folder.file("pointer")) << pointer;
  CHECK_THROWS_WITH(MappedFile(folder.file("pointer")),
                    Catch::Contains("/pointer: ") && Catch::Contains("git lfs pull"));
  CHECK_THROWS_WITH(open_folder(folder.path())->find("pointer"), Catch::Contains("git lfs pull"));
  std::ofstream(folder.file("long")) << pointer << std::string(2000, ' ');
  CHECK(MappedFile(folder.file("long")).bytes().size() == pointer.size() + 2000);
}

TEST_CASE("only regular files are opened, through links, and nothing is waited for") {
  const TempFolder folder;
  const std::string path = make_file(folder, 100);
  fs::create_symlink(path, folder.file("link"));
  fs::create_symlink(folder.file("link"), folder.file("link2"));
  CHECK(open_regular_file(folder.file("link2")).size == 100);
  CHECK(read_regular_file(folder.file("link")).size() == 100);
  REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  CHECK_THAT(error_of(Code::kInvalidArgument, [&] { open_regular_file(folder.file("pipe")); }),
             Catch::Contains("/pipe: expected a regular file, got a named pipe"));
  CHECK_THAT(error_of(Code::kInvalidArgument, [&] { open_regular_file(folder.path()); }),
             Catch::Contains("got a folder"));
  CHECK_THAT(error_of(Code::kInvalidArgument, [] { open_regular_file("/dev/zero"); }),
             Catch::Contains("got a device"));
  CHECK_THAT(error_of(Code::kNotFound, [&] { open_regular_file(folder.file("none")); }),
             Catch::Contains("/none: No such file"));
  fs::create_symlink("loop", folder.file("loop"));
  CHECK_THAT(error_of(Code::kInvalidArgument, [&] { open_regular_file(folder.file("loop")); }),
             Catch::Contains("symbolic links"));
}

TEST_CASE("a link of a folder that leads nowhere is told, and not passed over") {
  const TempFolder folder;
  const auto source = open_folder(folder.path());
  CHECK(!source->find("config.json"));
  fs::create_symlink("../../blobs/abc", folder.file("chat_template.jinja"));
  fs::create_symlink("loop", folder.file("loop"));
  CHECK_THAT(error_of(Code::kNotFound, [&] { source->find("chat_template.jinja"); }),
             Catch::StartsWith(folder.file("chat_template.jinja") +
                               ": a link to ../../blobs/abc, which leads to no file"));
  CHECK_THAT(error_of(Code::kNotFound, [&] { source->find("loop"); }),
             Catch::Contains("/loop: a link to loop, which leads to no file"));
}

}  // namespace tgi
