// The hashes that files of a model are known by: sha256, md5, and git's sha1 of a blob, over
// OpenSSL.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "cmd/download/source.h"

namespace tgi::download {

class ContentHash {
 public:
  // The strongest that is known of the file; none when nothing is.
  explicit ContentHash(const RemoteFile& file);
  ~ContentHash();

  bool is_known() const { return !expected_.empty(); }
  const char* name() const { return name_; }  // "sha256"
  const std::string& expected() const { return expected_; }

  void restart();
  void add(std::span<const std::byte> bytes);
  std::string finish();  // lower-case hexadecimal

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::string expected_;
  std::string prefix_;  // goes before the content
  const char* name_ = "";
};

// sha256 of a text, in hexadecimal.
std::string sha256_of(const std::string& text);

}  // namespace tgi::download
