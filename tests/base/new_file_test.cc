// A file that is whole or not there.
#include "base/files/new_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace tgi {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("a new file is there when it is committed, with what was appended, for all to read") {
  const TempFolder folder;
  const std::string path = folder.file("a/b/model.gguf");
  NewFile file(path);
  file.append(bytes_of("one "));
  file.append(bytes_of("two"));
  CHECK(!std::filesystem::exists(path));
  CHECK(content_of(file.path()) == "one two");
  CHECK(file.commit());
  CHECK(content_of(path) == "one two");
  CHECK(names_in(folder.file("a/b")) == std::vector<std::string>{"model.gguf"});
  using std::filesystem::perms;
  const perms mode = std::filesystem::status(path).permissions();
  CHECK((mode & perms::others_read) == perms::others_read);
}

TEST_CASE("a new file that is given up leaves nothing") {
  const TempFolder folder;
  {
    NewFile file(folder.file("out"));
    file.append(bytes_of("half"));
    CHECK(names_in(folder.path()).size() == 1);
  }
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("what is there already stays as it is") {
  const TempFolder folder;
  std::ofstream(folder.file("out")) << "old";
  {
    NewFile file(folder.file("out"));
    file.append(bytes_of("new"));
    CHECK(!file.commit());
  }
  CHECK(content_of(folder.file("out")) == "old");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"out"});
}

TEST_CASE("what a dead process left of a file goes, what a living one writes stays") {
  const TempFolder folder;
  const std::string dead = ".out.partial-999999999-abcdef";  // no process has such a number
  const std::string alive = ".out.partial-1-abcdef";
  const std::string other = ".output.partial-999999999-abcdef";
  for (const std::string& name : {dead, alive, other}) std::ofstream(folder.file(name)) << "half";
  NewFile file(folder.file("out"));
  CHECK(file.commit());
  CHECK(names_in(folder.path()) == std::vector<std::string>{alive, other, "out"});
}

TEST_CASE("too little room on the disk is said with both numbers, before anything is written") {
  const TempFolder folder;
  const NewFile file(folder.file("out"));
  file.require_space(1);
  try {
    file.require_space(int64_t{1} << 60);
    FAIL("it would not fit");
  } catch (const Error& error) {
    CHECK(error.code() == Code::kOutOfMemory);
    CHECK_THAT(error.what(), Catch::Contains("needs 1152922 TB") && Catch::Contains("free"));
  }
}

TEST_CASE("a folder that can't be written in is named") {
  const TempFolder folder;
  std::ofstream(folder.file("file")) << "no folder";
  CHECK_THROWS_WITH(NewFile(folder.file("file/out")), Catch::Contains("file"));
}

}  // namespace tgi
