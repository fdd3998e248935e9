#include "engine/text/tokenizer/rank_files.h"

#include "base/error.h"
#include "engine/text/tokenizer/tekken.h"
#include "engine/text/tokenizer/tiktoken.h"

namespace tgi {
namespace {

constexpr const char* kTekken = "tekken.json";

}  // namespace

std::optional<std::string> find_rank_file(const FileSource& files) {
  if (files.find(kTekken)) return kTekken;
  return find_tiktoken_file(files);
}

TokenizerJson read_rank_file(const FileSource& files,
                             const std::string& name,
                             const TokenizerConfig& config) {
  const std::string_view text = files.require_text(name);
  if (name == kTekken) {
    try {
      return read_tekken(text, config);
    } catch (const Error& error) {
      throw error.in(files.describe(name));
    }
  }
  const TiktokenConfig more = read_tiktoken_config(files);
  try {
    return read_tiktoken(text, config, more);
  } catch (const Error& error) {
    throw error.in(files.describe(name));
  }
}

}  // namespace tgi
