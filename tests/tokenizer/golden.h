// Reading what scripts/golden/make_tokenizer_goldens wrote into tests/tokenizer/golden.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/text/tokenizer.h"

namespace tgi {

std::string golden_path(const std::string& name);
std::string read_file(const std::string& path);
std::vector<std::string> read_lines(const std::string& path);  // without the line ends

// cases.txt: texts of all kinds, some not UTF-8.
std::vector<std::string> read_cases();
std::string unescaped(std::string_view line);

// The tokenizer of a folder, or of contents given here; config: tokenizer_config.json, or "".
std::unique_ptr<Tokenizer> load_folder(const std::string& folder);
std::unique_ptr<Tokenizer> load_contents(const std::string& name,
                                         const std::string& contents,
                                         const std::string& config);

// A document of the reference's with `changed` merged over it (RFC 7396, null removes).
std::string changed_golden(const std::string& name, const std::string& changed);

// Newer versions of nlohmann/json compare no vector with JSON.
inline std::vector<std::string> strings_of(const Json& json) {
  return json.get<std::vector<std::string>>();
}

std::string fnv(std::string_view bytes);

// One hash for the ids, with special tokens, of each `group` texts; as encode_hashes of the script.
std::vector<std::string> encode_hashes(const Tokenizer& tokenizer,
                                       std::span<const std::string> texts,
                                       size_t group);

// One hash for each text joined with the next, every other pair without special tokens; as pairs of
// the script.
std::string pairs_hash(const Tokenizer& tokenizer, std::span<const std::string> texts);

// What the text of `ids` adds up to as it runs on from its first token. REQUIRES: the tokenizer has
// a running text.
std::string run_on(const Tokenizer& tokenizer, std::span<const int32_t> ids);

// The same lists of ids as the script's random_ids; without_special leaves out special ones.
std::vector<std::vector<int32_t>> random_ids(const Tokenizer& tokenizer,
                                             size_t count,
                                             bool without_special);

std::vector<std::string> decode_hashes(const Tokenizer& tokenizer,
                                       size_t count,
                                       size_t group,
                                       bool without_special);

}  // namespace tgi
