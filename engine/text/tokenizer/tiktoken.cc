#include "engine/text/tokenizer/tiktoken.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/error.h"
#include "engine/text/tokenizer/byte_ranks.h"
#include "engine/text/tokenizer/tiktoken_classes.h"

namespace tgi {
namespace {

constexpr size_t kShownOfLine = 80;         // bytes of a line in a message
constexpr int64_t kMostReserved = 1 << 16;  // ids that nothing names, between those that are named

// The next line of `text` from `at` on, without its end.
std::string_view next_line(std::string_view text, size_t& at) {
  const size_t end = std::min(text.find('\n', at), text.size());
  std::string_view line = text.substr(at, end - at);
  at = end + 1;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

struct RankLine {
  std::string_view token;  // in base64
  int64_t rank;
};

std::optional<RankLine> read_line(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos || space == 0) return std::nullopt;
  RankLine out{line.substr(0, space), 0};
  const char* const end = line.data() + line.size();
  const auto [stopped, error] = std::from_chars(line.data() + space + 1, end, out.rank);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return out;
}

// A SentencePiece model begins with the tag of its pieces, which is a line break.
bool holds_ranks(std::string_view text) {
  size_t at = 0;
  const auto line = read_line(next_line(text, at));
  if (!line || line->token.size() > 2 * ByteRanks::kMostBytes) return false;
  return std::all_of(line->token.begin(), line->token.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '/' || c == '=';
  });
}

ByteRanks read_ranks(std::string_view text) {
  ByteRanks out;
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const std::string_view line = next_line(text, at);
    ++number;
    if (line.empty()) continue;
    try {
      const auto parsed = read_line(line);
      if (!parsed) {
        const Json shown(line.substr(0, kShownOfLine));
        throw Error(Code::kInvalidArgument,
                    "expected base64, a space and a rank, got " +
                        shown.dump(-1, ' ', true, Json::error_handler_t::replace));
      }
      out.add(decode_base64(parsed->token), parsed->rank);
    } catch (const Error& error) {
      throw error.in(fmt::format("line {}", number));
    }
  }
  return out;
}

bool is_there(const std::vector<AddedToken>& tokens, std::string_view content) {
  return std::any_of(tokens.begin(), tokens.end(),
                     [&](const AddedToken& token) { return token.content == content; });
}

AddedToken special(std::string content, int64_t id) {
  AddedToken out;
  out.content = std::move(content);
  out.id = static_cast<int32_t>(id);
  out.special = true;
  return out;
}

// What the class lists comes behind the ranks; the folder's own list goes before it. As in
// transformers, ids between those of the list get names too.
std::vector<AddedToken> added_tokens(const TokenizerConfig& config,
                                     const TiktokenConfig& more,
                                     const std::vector<std::string>& of_class,
                                     int64_t highest_rank) {
  std::vector<AddedToken> out = config.added_tokens;
  int64_t last = highest_rank;
  for (const AddedToken& token : out) last = std::max<int64_t>(last, token.id);
  if (last - highest_rank > kMostReserved) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("tokenizer_config.json has a token {}, and the ranks end at {}; is it of "
                    "another model?",
                    last, highest_rank));
  }
  std::vector<bool> is_named(static_cast<size_t>(last - highest_rank), false);
  for (const AddedToken& token : out) {
    if (token.id > highest_rank) is_named[static_cast<size_t>(token.id - highest_rank - 1)] = true;
  }
  for (size_t i = 0; i < of_class.size() && config.added_tokens.empty(); ++i) {
    out.push_back(special(of_class[i], ++last));
  }
  for (size_t i = 0; i < is_named.size(); ++i) {
    const int64_t id = highest_rank + 1 + static_cast<int64_t>(i);
    if (!is_named[i]) out.push_back(special(fmt::format("<|reserved_token_{}|>", id), id));
  }
  for (const std::string& content : more.extra_special_tokens) {
    if (!is_there(out, content)) out.push_back(special(content, ++last));
  }
  return out;
}

}  // namespace

std::optional<std::string> find_tiktoken_file(const FileSource& files) {
  if (const auto model = files.find_text("tokenizer.model")) {
    return holds_ranks(*model) ? std::optional<std::string>("tokenizer.model") : std::nullopt;
  }
  if (files.find("tiktoken.model")) return "tiktoken.model";
  std::vector<std::string> found;
  for (const std::string& name : files.names()) {
    if (name.ends_with(".tiktoken")) found.push_back(name);
  }
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) return found.front();
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: one file of a tokenizer's ranks is expected, and there are {}; take "
                          "away those that are not the model's",
                          files.describe(found.front()), fmt::join(found, ", ")));
}

TokenizerJson read_tiktoken(std::string_view text,
                            const TokenizerConfig& config,
                            const TiktokenConfig& more) {
  const TiktokenClass& row = find_tiktoken_class(more);
  ByteRanks ranks = read_ranks(text);
  const int64_t highest_rank = ranks.highest_id();
  Vocabulary vocabulary = ranks.finish();
  RankedSpec spec;
  spec.pattern = row.pattern;
  spec.normalizes = row.normalizes;
  std::vector<std::string> of_class;
  if (config.added_tokens.empty()) of_class = row.special(more, vocabulary.size());
  spec.added = added_tokens(config, more, of_class, highest_rank);
  spec.only_first = row.only_first;
  for (const std::string_view content : row.before) {
    const bool is_wanted = is_there(spec.added, content) && config.add_bos_token.value_or(true);
    if (row.needs_before || is_wanted) spec.before.emplace_back(content);
  }
  if (config.add_eos_token.value_or(false) && !spec.before.empty() && !config.eos_token.empty()) {
    spec.after.push_back(config.eos_token);
  }
  return make_ranked(std::move(vocabulary), spec);
}

}  // namespace tgi
