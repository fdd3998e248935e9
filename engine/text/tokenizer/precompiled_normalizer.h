// The normalizer "Precompiled" of tokenizer.json: the rewriting rules that sentencepiece compiles
// into a model (its normalizer_spec.precompiled_charsmap). Read as the `tokenizers` library reads
// them, which is not how sentencepiece does: rules are looked up for graphemes of up to five bytes,
// then for single characters, and of the rules that fit the shortest wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer/normalizer.h"

namespace tgi {

// The size of the trie in bytes (32 bits, little-endian), the units of a double-array trie (as
// github.com/s-yata/darts-clone has them), then the texts that its values point to, each ended by a
// zero byte. Immutable.
class Charsmap {
 public:
  // Throws kInvalidArgument when a part is cut off or points nowhere.
  explicit Charsmap(std::string_view bytes);

  // What replaces a text that begins like `text`, by the shortest rule that fits; nothing: no rule.
  std::optional<std::string_view> find(std::string_view text) const;

 private:
  void check_reachable() const;
  void check_value(uint32_t value) const;

  std::vector<uint32_t> units_;
  std::string texts_;
};

// component: {"precompiled_charsmap": base64}. Throws kInvalidArgument with its path.
std::unique_ptr<Normalizer::Step> make_precompiled_step(const JsonReader& component);

}  // namespace tgi
