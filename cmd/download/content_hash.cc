#include "cmd/download/content_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "base/error.h"

namespace tgi::download {

struct ContentHash::State {
  const EVP_MD* kind = nullptr;
  EVP_MD_CTX* context = EVP_MD_CTX_new();

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { EVP_MD_CTX_free(context); }
};

ContentHash::ContentHash(const RemoteFile& file) : state_(std::make_unique<State>()) {
  TGI_CHECK(state_->context != nullptr);
  if (!file.sha256.empty()) {
    state_->kind = EVP_sha256();
    expected_ = file.sha256;
    name_ = "sha256";
  } else if (!file.git_sha1.empty()) {
    state_->kind = EVP_sha1();
    expected_ = file.git_sha1;
    prefix_ = fmt::format("blob {}", file.size) + '\0';
    name_ = "git's sha1";
  } else if (!file.md5.empty()) {
    state_->kind = EVP_md5();
    expected_ = file.md5;
    name_ = "md5";
  }
  restart();
}

ContentHash::~ContentHash() = default;

void ContentHash::restart() {
  if (!is_known()) return;
  TGI_CHECK(EVP_DigestInit_ex(state_->context, state_->kind, nullptr) == 1);
  add(std::as_bytes(std::span(prefix_)));
}

void ContentHash::add(std::span<const std::byte> bytes) {
  if (is_known()) TGI_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

std::string ContentHash::finish() {
  if (!is_known()) return "";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  TGI_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &size) == 1);
  std::string out;
  for (unsigned i = 0; i < size; ++i) out += fmt::format("{:02x}", digest[i]);
  return out;
}

std::string sha256_of(const std::string& text) {
  RemoteFile file;
  file.sha256 = "of a text";
  ContentHash hash(file);
  hash.add(std::as_bytes(std::span(text)));
  return hash.finish();
}

}  // namespace tgi::download
