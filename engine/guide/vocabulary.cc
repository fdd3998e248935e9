#include "engine/guide/vocabulary.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/utf8.h"
#include "engine/guide/state_mask.h"
#include "engine/text/tokenizer.h"

namespace tgi::guide {
namespace {

constexpr size_t kMaxKeptBytes = size_t{256} << 20;

// Tokens of a kind are together in the trie, each kind with paths of its own from the root. Where
// a state allows all texts of a kind, as in the middle of a string, their paths are not gone down
// at all, and those of the few that are left are near each other.
enum class TextKind : uint8_t {
  kLower,  // small letters of ASCII, or a blank and such
  kWord,   // the same with capitals
  kAscii,  // without quotes, backslashes and control characters, which end a string or are escaped
  kText,   // the same in whole characters of UTF-8
  kElse,
};

TextKind kind_of(std::string_view bytes) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_letter = [&](char c) { return is_lower(c) || (c >= 'A' && c <= 'Z'); };
  const auto is_plain = [](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return byte >= 0x20 && byte != 0x7F && c != '"' && c != '\\';
  };
  const std::string_view word = bytes.substr(bytes.starts_with(' ') ? 1 : 0);
  if (std::ranges::all_of(word, is_lower)) return TextKind::kLower;
  if (std::ranges::all_of(word, is_letter)) return TextKind::kWord;
  if (!std::ranges::all_of(bytes, is_plain)) return TextKind::kElse;
  const auto is_ascii = [](char c) { return static_cast<uint8_t>(c) < 0x80; };
  if (std::ranges::all_of(bytes, is_ascii)) return TextKind::kAscii;
  return is_valid_utf8(bytes) ? TextKind::kText : TextKind::kElse;
}

bool is_bracketed(std::string_view name) {
  return name.size() > 2 && ((name.front() == '<' && name.back() == '>') ||
                             (name.front() == '[' && name.back() == ']'));
}

}  // namespace

Vocabulary::Vocabulary(std::vector<Token> tokens, std::vector<int32_t> end_token_ids)
    : tokens_(std::move(tokens)), end_token_ids_(std::move(end_token_ids)) {
  // An answer ends at them, so they are no part of a text, even where the tokenizer says that they
  // are.
  for (const int32_t id : end_token_ids_) {
    if (id >= 0 && id < size()) tokens_[static_cast<size_t>(id)].bytes.clear();
  }
  for (size_t id = 0; id < tokens_.size(); ++id) {
    Token& token = tokens_[id];
    // Depths of the trie have 16 bits; no tokenizer has longer tokens.
    if (token.bytes.size() > std::numeric_limits<uint16_t>::max()) token.bytes.clear();
    longest_token_ = std::max(longest_token_, token.bytes.size());
    if (!token.special_name.empty())
      special_ids_.try_emplace(token.special_name, static_cast<int32_t>(id));
  }
  build_trie();
}

Vocabulary::~Vocabulary() = default;

std::shared_ptr<const Vocabulary> Vocabulary::from(const Tokenizer& tokenizer,
                                                   int32_t vocab_size,
                                                   std::vector<int32_t> end_token_ids) {
  std::vector<Token> tokens(static_cast<size_t>(vocab_size));
  for (int32_t id = 0; id < std::min(vocab_size, tokenizer.vocab_size()); ++id) {
    Token& token = tokens[static_cast<size_t>(id)];
    std::string name = tokenizer.token_of(id);
    const bool is_special = tokenizer.is_special(id);
    if (!is_special) tokenizer.append_bytes(id, false, token.bytes);
    if (is_special || (is_bracketed(name) && token.bytes == name))
      token.special_name = std::move(name);
  }
  return std::make_shared<const Vocabulary>(std::move(tokens), std::move(end_token_ids));
}

void Vocabulary::build_trie() {
  std::vector<int32_t> order;
  for (size_t id = 0; id < tokens_.size(); ++id) {
    if (!tokens_[id].bytes.empty()) order.push_back(static_cast<int32_t>(id));
  }
  std::vector<TextKind> kinds(tokens_.size());
  for (const int32_t id : order) kinds[static_cast<size_t>(id)] = kind_of(bytes(id));
  // char_traits compare as unsigned bytes, and a prefix comes before what it begins: the order of
  // the walk.
  std::ranges::stable_sort(
      order, {}, [&](int32_t id) { return std::pair(kinds[static_cast<size_t>(id)], bytes(id)); });
  std::vector<TokenTrie::Node>& nodes = trie_.nodes;
  const auto add_node = [&](uint8_t byte, size_t depth) {
    TokenTrie::Node& node = nodes.emplace_back();
    node.byte = byte;
    node.depth = static_cast<uint16_t>(depth);
    node.token_begin = static_cast<int32_t>(trie_.token_ids.size());
  };
  std::vector<size_t> path{0};  // the nodes from the root to the last token's
  const auto close_to = [&](size_t depth) {
    for (; path.size() > depth + 1; path.pop_back())
      nodes[path.back()].end = static_cast<int32_t>(nodes.size());
  };
  add_node(0, 0);
  std::string_view before;
  TextKind kind_before = TextKind::kLower;
  for (const int32_t id : order) {
    const std::string_view text = bytes(id);
    const TextKind kind = kinds[static_cast<size_t>(id)];
    const auto [a, b] = std::ranges::mismatch(before, text);
    const size_t shared = kind == kind_before ? static_cast<size_t>(a - before.begin()) : 0;
    kind_before = kind;
    close_to(shared);
    for (size_t depth = shared; depth < text.size(); ++depth) {
      path.push_back(nodes.size());
      add_node(static_cast<uint8_t>(text[depth]), depth + 1);
    }
    trie_.token_ids.push_back(id);
    before = text;
  }
  close_to(0);
  nodes[0].end = static_cast<int32_t>(nodes.size());
  add_node(0, 0);
  trie_.describe();
  all_tokens_.assign((tokens_.size() + 31) / 32, 0);
  for (const int32_t id : trie_.token_ids) {
    all_tokens_[static_cast<size_t>(id) / 32] |= uint32_t{1} << (static_cast<uint32_t>(id) % 32);
  }
}

std::optional<int32_t> Vocabulary::special_id(std::string_view name) const {
  const auto found = special_ids_.find(std::string(name));
  if (found == special_ids_.end()) return std::nullopt;
  return found->second;
}

bool Vocabulary::is_end_token(int32_t id) const {
  return std::ranges::find(end_token_ids_, id) != end_token_ids_.end();
}

template <typename Visit>
void Vocabulary::follow(std::string_view text, Visit visit) const {
  const auto for_children = [&](int32_t node, char byte, auto take) {
    const auto last = static_cast<size_t>(trie_.first_child[static_cast<size_t>(node) + 1]);
    for (auto i = static_cast<size_t>(trie_.first_child[static_cast<size_t>(node)]); i < last;
         ++i) {
      if (trie_.child_bytes[i] == static_cast<uint8_t>(byte)) take(trie_.children[i]);
    }
  };
  const auto go_down = [&](int32_t node) {
    for (size_t depth = 1; node > 0; ++depth) {
      visit(node, depth);
      if (depth == text.size()) return;
      int32_t next = 0;
      for_children(node, text[depth], [&](int32_t child) { next = child; });
      node = next;
    }
  };
  if (!text.empty()) for_children(0, text[0], go_down);
}

std::pair<size_t, int32_t> Vocabulary::longest_prefix(std::string_view text) const {
  std::pair<size_t, int32_t> best{0, -1};
  follow(text, [&](int32_t node, size_t depth) {
    const std::span<const int32_t> here = trie_.tokens_at(node);
    if (!here.empty() && depth > best.first) best = {depth, here[0]};
  });
  return best;
}

bool Vocabulary::has_longer(std::string_view text) const {
  bool found = false;
  follow(text, [&](int32_t node, size_t depth) {
    found = found || (depth == text.size() && trie_.end_of(node) > node + 1);
  });
  return found;
}

Vocabulary::Kept Vocabulary::find(const Digest& digest) const {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(digest);
  return found == kept_.end() ? Kept{} : found->second;
}

void Vocabulary::keep(const Digest& digest, const Kept& kept, size_t num_bytes) const {
  const std::lock_guard lock(mutex_);
  kept_bytes_ += num_bytes;
  if (kept_bytes_ > kMaxKeptBytes) {
    kept_.clear();
    kept_bytes_ = num_bytes;
  }
  Kept& entry = kept_[digest];
  if (kept.state != nullptr) entry.state = kept.state;
  if (kept.loop != nullptr) entry.loop = kept.loop;
}

std::shared_ptr<const StateMask> Vocabulary::find_mask(const Digest& state) const {
  return find(state).state;
}

void Vocabulary::keep_mask(const Digest& state, std::shared_ptr<const StateMask> mask) const {
  const size_t num_leaves = mask->leaves != nullptr ? mask->leaves->num_bytes() : 0;
  const size_t num_bytes = mask->num_bytes() + num_leaves;
  keep(state, {std::move(mask), nullptr}, num_bytes);
}

std::shared_ptr<const LoopMask> Vocabulary::find_loop(const Digest& loop) const {
  return find(loop).loop;
}

void Vocabulary::keep_loop(const Digest& loop, std::shared_ptr<const LoopMask> mask) const {
  const size_t num_bytes = mask->num_bytes();
  keep(loop, {nullptr, std::move(mask)}, num_bytes);
}

}  // namespace tgi::guide
