#include "engine/text/tokenizer/tekken.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/error.h"
#include "base/json_syntax.h"
#include "engine/text/tokenizer/byte_ranks.h"

namespace tgi {
namespace {

constexpr int kMaxTekkenDepth = 64;
constexpr int64_t kMostSpecial = 1 << 16;  // 1,000 in all files there are

constexpr std::string_view kBos = "<s>";
constexpr std::string_view kEos = "</s>";

// Those of files up to version v7, which may leave them out.
constexpr std::string_view kOldSpecial[] = {"<unk>",
                                            kBos,
                                            kEos,
                                            "[INST]",
                                            "[/INST]",
                                            "[AVAILABLE_TOOLS]",
                                            "[/AVAILABLE_TOOLS]",
                                            "[TOOL_RESULTS]",
                                            "[/TOOL_RESULTS]",
                                            "[TOOL_CALLS]",
                                            "[IMG]",
                                            "<pad>",
                                            "[IMG_BREAK]",
                                            "[IMG_END]",
                                            "[PREFIX]",
                                            "[MIDDLE]",
                                            "[SUFFIX]",
                                            "[SYSTEM_PROMPT]",
                                            "[/SYSTEM_PROMPT]",
                                            "[TOOL_CONTENT]"};

// The versions that mistral-common knows, and whether they may leave out the special tokens.
struct VersionRow {
  std::string_view name;
  bool has_old_special;
};
constexpr VersionRow kVersions[] = {{"v1", true},   {"v2", true},   {"v3", true},  {"v7", true},
                                    {"v11", false}, {"v13", false}, {"v15", false}};

const VersionRow& version_of(const JsonReader& config) {
  const std::string version = config.string("version");
  std::string known;
  for (const VersionRow& row : kVersions) {
    if (row.name == version) return row;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  throw Error(Code::kUnsupported, fmt::format("{}: \"{}\" is not known to this build; known are {}",
                                              config.path_of("version"), version, known));
}

struct Document {
  Json tree;                        // all but the vocabulary
  std::vector<std::string> tokens;  // of the vocabulary: their bytes, by rank
  bool has_vocab = false;
};

// An entry of the vocabulary.
std::string read_token(const Json& entry, size_t rank) {
  const JsonReader reader(entry, fmt::format("vocab[{}]", rank));
  reader.refuse_unknown({"rank", "token_bytes", "token_str"});
  reader.optional_string("token_str");  // for people to read
  if (const int64_t written = reader.integer("rank"); written != static_cast<int64_t>(rank)) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: expected {}, got {}; ranks follow each "
                                                    "other from 0 on",
                                                    reader.path_of("rank"), rank, written));
  }
  try {
    return decode_base64(reader.string("token_bytes"));
  } catch (const Error& error) {
    throw error.in(reader.path_of("token_bytes"));
  }
}

// The vocabulary is nearly all of the file: its entries are taken out of the tree one by one.
Document read_document(std::string_view text) {
  Document out;
  bool in_vocab = false;
  const auto take = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth >= kMaxTekkenDepth) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("JSON nests deeper than {} levels", kMaxTekkenDepth));
    }
    if (event == Event::key && depth == 1) in_vocab = parsed == "vocab";
    out.has_vocab = out.has_vocab || (in_vocab && event == Event::array_start && depth == 1);
    if (!in_vocab || depth != 2) return true;
    if (event != Event::object_end && event != Event::value && event != Event::array_end) {
      return true;
    }
    out.tokens.push_back(read_token(parsed, out.tokens.size()));
    return false;
  };
  try {
    out.tree = Json::parse(text, take);
  } catch (const Json::exception&) {
    throw json_syntax_error(text);
  }
  const JsonReader document(out.tree, "");
  document.refuse_unknown({"config", "vocab", "special_tokens", "version", "type", "image",
                           "multimodal", "audio", "model_settings_builder"});
  if (!out.has_vocab) {
    throw Error(Code::kInvalidArgument, "vocab: expected an array of tokens and their ranks");
  }
  return out;
}

std::vector<std::string> listed_special(const JsonReader& document, const VersionRow& version) {
  std::vector<std::string> out;
  if (!document.has("special_tokens")) {
    if (version.has_old_special) return {std::begin(kOldSpecial), std::end(kOldSpecial)};
    throw Error(Code::kInvalidArgument,
                fmt::format("special_tokens: expected an array, which files of version \"{}\" have",
                            version.name));
  }
  const Json& list = document.json().at("special_tokens");
  if (!list.is_array()) throw Error(Code::kInvalidArgument, "special_tokens: expected an array");
  for (const Json& entry : list) {
    const JsonReader reader(entry, fmt::format("special_tokens[{}]", out.size()));
    reader.refuse_unknown({"rank", "token_str", "is_control"});
    reader.boolean_or("is_control", true);  // mistral-common hides both kinds
    if (reader.integer("rank") != static_cast<int64_t>(out.size())) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: expected {}, got {}; ranks follow each other from 0 on",
                              reader.path_of("rank"), out.size(), reader.integer("rank")));
    }
    out.push_back(reader.string("token_str"));
  }
  return out;
}

std::vector<AddedToken> special_tokens(std::vector<std::string> listed, int64_t count) {
  if (count < static_cast<int64_t>(listed.size()) || count > kMostSpecial) {
    throw Error(Code::kInvalidArgument,
                fmt::format("config.default_num_special_tokens: expected from {} (as many as are "
                            "listed) to {}, got {}",
                            listed.size(), kMostSpecial, count));
  }
  while (static_cast<int64_t>(listed.size()) < count) {
    listed.push_back(fmt::format("<SPECIAL_{}>", listed.size()));
  }
  std::vector<AddedToken> out;
  for (std::string& content : listed) {
    AddedToken token;
    token.id = static_cast<int32_t>(out.size());
    token.content = std::move(content);
    token.special = true;
    out.push_back(std::move(token));
  }
  return out;
}

// mistral-common's regular expressions are Rust's, in which x{1,3}+ gives nothing back; those of a
// tokenizer.json repeat it.
std::string read_pattern(const JsonReader& config) {
  std::string pattern = config.string("pattern");
  if (pattern.find("}+") == std::string::npos) return pattern;
  throw Error(Code::kUnsupported, fmt::format("{}: a repetition that gives nothing back (\"}}+\")",
                                              config.path_of("pattern")));
}

}  // namespace

TokenizerJson read_tekken(std::string_view text, const TokenizerConfig& config) {
  const Document parsed = read_document(text);
  const JsonReader document(parsed.tree, "");
  const JsonReader own = document.object("config");
  own.refuse_unknown({"pattern", "num_vocab_tokens", "default_vocab_size",
                      "default_num_special_tokens", "version"});
  const VersionRow& version = version_of(own);
  RankedSpec spec;
  spec.pattern = read_pattern(own);
  const int64_t num_special = own.integer("default_num_special_tokens");
  spec.added = special_tokens(listed_special(document, version), num_special);
  const int64_t num_ranks = own.integer("default_vocab_size") - num_special;
  if (num_ranks < 0 || num_ranks > static_cast<int64_t>(parsed.tokens.size())) {
    throw Error(Code::kInvalidArgument,
                fmt::format("config.default_vocab_size: expected from {} to {} (special tokens and "
                            "those of vocab), got {}",
                            num_special, num_special + static_cast<int64_t>(parsed.tokens.size()),
                            num_ranks + num_special));
  }
  ByteRanks ranks;
  for (int64_t rank = 0; rank < num_ranks; ++rank) {
    try {
      ranks.add(parsed.tokens[static_cast<size_t>(rank)], num_special + rank);
    } catch (const Error& error) {
      throw error.in(fmt::format("vocab[{}]", rank));
    }
  }
  if (config.add_bos_token.value_or(true)) spec.before.emplace_back(kBos);
  if (config.add_eos_token.value_or(false)) spec.after.emplace_back(kEos);
  try {
    return make_ranked(ranks.finish(), spec);
  } catch (const Error& error) {
    throw error.in("vocab and special_tokens");
  }
}

}  // namespace tgi
