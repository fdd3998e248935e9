#include "tests/guide/byte_matcher.h"

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/guide/matcher.h"

namespace tgi::guide {

std::shared_ptr<const Vocabulary> byte_vocabulary() {
  static const std::shared_ptr<const Vocabulary> vocabulary = [] {
    constexpr int32_t kNumBytes = 256;
    std::vector<Vocabulary::Token> tokens;
    for (int32_t byte = 0; byte < kNumBytes; ++byte) {
      tokens.push_back({std::string(1, static_cast<char>(byte)), ""});
    }
    tokens.push_back({"", "<|end|>"});
    return std::make_shared<const Vocabulary>(std::move(tokens), std::vector{kNumBytes});
  }();
  return vocabulary;
}

bool accepts_bytes(const std::shared_ptr<const CompiledGrammar>& grammar, std::string_view text) {
  Matcher matcher(grammar, byte_vocabulary());
  for (const char c : text) {
    const auto byte = static_cast<int32_t>(static_cast<unsigned char>(c));
    const bool is_allowed = matcher.allows(byte);
    TGI_CHECK(matcher.accept(byte) == is_allowed);
    if (!is_allowed) return false;
  }
  return matcher.can_end();
}

}  // namespace tgi::guide
