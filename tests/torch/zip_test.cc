// Zip files changed at any byte, cut at any length: refused or read, never beyond the file.
#include "cmd/download/torch/zip_archive.h"

#include "base/error.h"
#include "cmd/download/torch/torch_file.h"
#include "tests/torch/torch_files.h"

namespace tgi::download {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Every byte that comes out is touched, so that a sanitizer sees a view that leads astray.
size_t read_and_touch(const std::string& text) {
  size_t sum = 0;
  try {
    for (const TorchTensor& tensor : read_torch(bytes_of(text), "test")) {
      for (const std::byte byte : tensor.storage) sum += std::to_integer<size_t>(byte);
      CHECK(tensor.num_bytes() <= static_cast<int64_t>(tensor.storage.size()));
    }
  } catch (const Error& error) {
    CHECK(error.code() != Code::kInternal);
  }
  return sum;
}

}  // namespace

TEST_CASE("members are views of the file") {
  for (const char* name : {"views/pytorch_model.bin", "zip64/pytorch_model.bin"}) {
    INFO(name);
    const std::string text = read_all(golden(name));
    const auto members = read_zip(bytes_of(text), "test");
    CHECK(members.size() > 20);
    for (const ZipMember& member : members) {
      CHECK(reinterpret_cast<const char*>(member.bytes.data()) >= text.data());
      CHECK(reinterpret_cast<const char*>(member.bytes.data() + member.bytes.size()) <=
            text.data() + text.size());
    }
  }
}

TEST_CASE("a comment behind the directory does not hide it") {
  std::string text = read_all(golden("refused/good.bin"));
  text[text.size() - 2] = 5;
  CHECK_THROWS_AS(read_zip(bytes_of(text), "test"), Error);
  CHECK(read_zip(bytes_of(text + "hello"), "test").size() > 4);
}

TEST_CASE("a file cut at any length is refused") {
  const std::string whole = read_all(golden("refused/good.bin"));
  for (size_t size = 0; size < whole.size(); ++size) {
    CHECK_THROWS_AS(read_torch(bytes_of(whole.substr(0, size)), "test"), Error);
  }
}

TEST_CASE("a file changed at any byte is refused or read within its bounds") {
  for (const char* name : {"refused/good.bin", "zip64/pytorch_model.bin"}) {
    const std::string whole = read_all(golden(name));
    CHECK(read_and_touch(whole) > 0);
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const int value : {0x00, 0x01, 0x7f, 0xff}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(value);
        read_and_touch(changed);
      }
    }
  }
}

}  // namespace tgi::download
