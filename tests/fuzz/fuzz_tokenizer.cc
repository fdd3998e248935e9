// Any bytes as a tokenizer.json, a tekken.json, a file of ranks and as a vocab.txt: refused with a
// typed error, or a tokenizer that encodes and decodes without breaking its promises. Regular
// expressions and word lists of the input run too, so inputs are small and searches that PCRE2
// gives up are fine.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "engine/text/tokenizer/json_tokenizer.h"
#include "engine/text/tokenizer/tekken.h"
#include "engine/text/tokenizer/tiktoken.h"
#include "engine/text/tokenizer/vocab_txt.h"

namespace {

void check(const tgi::JsonTokenizer& tokenizer, std::string_view text) {
  const std::vector<int32_t> ids = tokenizer.encode(text, true);
  for (const int32_t id : ids) {
    // Ids of a post-processor's template are its author's business.
    if (id < 0) std::abort();
  }
  const tgi::TypedIds alone = tokenizer.encode_typed(text, std::nullopt, true);
  if (alone.ids != ids || alone.type_ids.size() != ids.size()) std::abort();
  if (tgi::is_valid_utf8(text) && tokenizer.spans(text, true).size() != ids.size()) std::abort();
  std::string streamed;
  for (size_t i = 0; i < ids.size(); ++i) tokenizer.append_bytes(ids[i], i == 0, streamed);
  const std::string decoded = tokenizer.decode(ids, false);
  if (!tgi::is_valid_utf8(decoded)) std::abort();
  const tgi::TypedIds pair = tokenizer.encode_typed(text, "b", true);  // may not be known
  if (pair.ids.size() != pair.type_ids.size()) std::abort();
}

template <typename Make>
void run(const Make& make, std::string_view input) {
  try {
    const tgi::JsonTokenizer tokenizer = make();
    check(tokenizer, "Hello  w\u00F6rld 123\n\t<s>\xF0\x9F\x91\x8D\xFF</s>");
    check(tokenizer, input.substr(0, std::min<size_t>(input.size(), 300)));
  } catch (const tgi::Error& error) {
    const tgi::Code code = error.code();
    if (code != tgi::Code::kInvalidArgument && code != tgi::Code::kUnsupported) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tgi::set_log_level(tgi::LogLevel::kOff);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const tgi::TokenizerConfig config;
  run([&] { return tgi::JsonTokenizer(input, config); }, input);
  run([&] { return tgi::JsonTokenizer(tgi::read_tekken(input, config), config); }, input);
  tgi::TiktokenConfig ranks;
  ranks.tokenizer_class = "QWenTokenizer";
  run([&] { return tgi::JsonTokenizer(tgi::read_tiktoken(input, config, ranks), config); }, input);
  run([&] { return tgi::JsonTokenizer(tgi::read_vocab_txt(input, config, {}), config); }, input);
  return 0;
}
