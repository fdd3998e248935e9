// Encodes and decodes for scripts/golden/fuzz_tokenizers. A line of standard input is a JSON object
// of a folder and texts; the answer to it is a line of JSON: of each text the ids with and without
// special tokens, and what the former decode to with special tokens and without; or an error.
#include <array>
#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "tests/tokenizer/golden.h"

namespace tgi {
namespace {

std::string text_without_special(const Tokenizer& tokenizer, std::vector<int32_t> ids) {
  std::string text = tokenizer.decode(ids, true);
  if (tokenizer.running_text(true) == nullptr) return text;
  std::erase_if(ids, [&](int32_t id) { return tokenizer.is_special(id); });
  const std::string running = run_on(tokenizer, ids);
  return running == text ? text : "unlike as it runs on: " + running;
}

Json answer(const std::string& line) {
  try {
    const Json asked = parse_json(line);
    const auto tokenizer = load_folder(asked.at("folder").get<std::string>());
    Json out = Json::array();
    for (const Json& each : asked.at("texts")) {
      const auto text = each.get<std::string>();
      const auto ids = tokenizer->encode(text, true);
      out.push_back({ids, tokenizer->encode(text, false), tokenizer->decode(ids, false),
                     text_without_special(*tokenizer, ids)});
    }
    return out;
  } catch (const Error& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace
}  // namespace tgi

int main() {
  tgi::set_log_level(tgi::LogLevel::kOff);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << tgi::answer(line).dump() << std::endl;  // flushed: somebody waits for it
  }
  return 0;
}
