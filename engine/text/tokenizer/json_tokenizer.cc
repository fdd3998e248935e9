#include "engine/text/tokenizer/json_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "engine/text/tokenizer/component_list.h"
#include "engine/text/tokenizer/tokenizer_json.h"

namespace tgi {
namespace {

// The object under `key` of the document, or nothing when it is absent or null.
template <typename Component>
Component read_component(const JsonReader& document, std::string_view key) {
  return document.has(key) ? Component(document.object(key)) : Component();
}

TokenizerJson read_version_1(std::string_view json) {
  TokenizerJson parsed = read_tokenizer_json(json);
  const JsonReader document(parsed.tree, "");
  if (const std::string version = document.string_or("version", "1.0"); version != "1.0") {
    throw Error(Code::kUnsupported, fmt::format("version: expected \"1.0\", got \"{}\"", version));
  }
  return parsed;
}

// Beside a tokenizer.json nobody asks tokenizer_config.json for them.
TokenizerConfig without_ends(TokenizerConfig config) {
  config.add_bos_token.reset();
  config.add_eos_token.reset();
  return config;
}

std::optional<CutSide> read_cut_side(const JsonReader& document) {
  if (!document.has("truncation")) return std::nullopt;
  const JsonReader truncation = document.object("truncation");
  const std::string direction = truncation.string_or("direction", "Right");
  if (direction == "Left") return CutSide::kLeft;
  if (direction == "Right") return CutSide::kRight;
  throw Error(Code::kInvalidArgument, fmt::format("{}: expected Left or Right, got \"{}\"",
                                                  truncation.path_of("direction"), direction));
}

}  // namespace

JsonTokenizer::JsonTokenizer(std::string_view json, const TokenizerConfig& config)
    : JsonTokenizer(read_version_1(json), without_ends(config)) {}

JsonTokenizer::JsonTokenizer(TokenizerJson parsed, const TokenizerConfig& config)
    : normalizer_(read_component<Normalizer>(JsonReader(parsed.tree, ""), "normalizer")),
      pre_tokenizer_(read_component<PreTokenizer>(JsonReader(parsed.tree, ""), "pre_tokenizer")),
      model_(make_piece_model(parsed)),
      post_processor_(read_component<PostProcessor>(JsonReader(parsed.tree, ""), "post_processor")),
      cut_side_(read_cut_side(JsonReader(parsed.tree, ""))),
      decoder_(read_component<Decoder>(JsonReader(parsed.tree, ""), "decoder")) {
  add_added_tokens(parsed);
  if (!parsed.is_ranked) add_extra_tokens(config);
  added_.build(config.split_special_tokens);
  find_special_copies();
  if (post_processor_.adds_nothing()) add_configured_ends(config);
}

void JsonTokenizer::add_configured_ends(const TokenizerConfig& config) {
  const auto ids_when = [this](const std::optional<bool>& wanted, const std::string& token,
                               std::string_view key) {
    std::vector<int32_t> ids;
    if (!wanted.value_or(false) || token.empty()) return ids;
    const auto id = id_of(token);
    if (!id) {
      throw Error(
          Code::kInvalidArgument,
          fmt::format("{} \"{}\" of tokenizer_config.json is not in the vocabulary", key, token));
    }
    ids.push_back(*id);
    return ids;
  };
  post_processor_.add_ends(ids_when(config.add_bos_token, config.bos_token, "bos_token"),
                           ids_when(config.add_eos_token, config.eos_token, "eos_token"));
}

// The library gives a token that the model does not have the next free id, whatever the file says.
// Among ranks the special tokens have ids of their own.
void JsonTokenizer::add_added_tokens(const TokenizerJson& parsed) {
  const JsonReader document(parsed.tree, "");
  if (!document.has("added_tokens")) return;
  const Vocabulary& vocabulary = model_->vocabulary();
  auto next_id = static_cast<int64_t>(vocabulary.size());
  for (const JsonReader& member : component_list(document, "added_tokens")) {
    AddedToken token;
    token.content = member.string("content");
    if (token.content.empty()) continue;
    token.single_word = member.boolean("single_word");
    token.lstrip = member.boolean("lstrip");
    token.rstrip = member.boolean("rstrip");
    token.normalized = member.boolean("normalized");
    token.special = member.boolean("special");
    const int32_t in_model = vocabulary.find(token.content);
    if (const auto known = added_.id_of(token.content)) {
      token.id = *known;
    } else if (parsed.is_ranked) {
      token.id = static_cast<int32_t>(member.integer("id"));
    } else {
      token.id = in_model >= 0 ? in_model : static_cast<int32_t>(next_id++);
    }
    if (next_id > Vocabulary::kHighestId) {
      throw Error(Code::kInvalidArgument, "added_tokens: too many");
    }
    if (const int64_t written = member.integer("id"); written != token.id) {
      log_warn("token has another id than tokenizer.json says",
               {{"token", token.content}, {"says", written}, {"has", token.id}});
    }
    add(std::move(token));
  }
}

// The library adds those that are in no tokenizer.json behind all others, but for what the model
// has.
void JsonTokenizer::add_extra_tokens(const TokenizerConfig& config) {
  const Vocabulary& vocabulary = model_->vocabulary();
  for (AddedToken token : config.extra_tokens) {
    if (added_.id_of(token.content)) continue;
    const int32_t in_model = vocabulary.find(token.content);
    const auto size = static_cast<int32_t>(vocabulary.size());
    token.id = in_model >= 0 ? in_model : std::max(size, added_.highest_id() + 1);
    if (token.id > Vocabulary::kHighestId) {
      throw Error(Code::kInvalidArgument, "extra_special_tokens: too many");
    }
    add(std::move(token));
  }
}

void JsonTokenizer::add(AddedToken token) {
  token.normalized_content = token.content;
  bool at_start = true;
  if (token.normalized) normalizer_.apply(token.normalized_content, at_start);
  added_.add(std::move(token));
}

// The library tells by their text which tokens are special.
void JsonTokenizer::find_special_copies() {
  const Vocabulary& vocabulary = model_->vocabulary();
  if (!vocabulary.has_copies()) return;
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    const auto added = added_.id_of(vocabulary.token_at(i));
    if (added && is_special(*added)) special_copies_.insert(vocabulary.id_at(i));
  }
}

void JsonTokenizer::encode_text(std::string_view text,
                                bool at_start,
                                Alignment* alignment,
                                std::vector<int32_t>& ids,
                                Places* places) const {
  const Pieces pieces =
      pre_tokenizer_.apply(std::string(text), at_start, model_->takes_raw_bytes(), alignment);
  Places in_piece;
  for (const TextRange& range : pieces.ranges) {
    in_piece.clear();
    model_->encode(range.in(pieces.text), pieces.raw_bytes, ids,
                   places == nullptr ? nullptr : &in_piece);
    for (const TextRange& place : in_piece) {
      const TextRange changed{range.begin + place.begin, range.begin + place.end};
      // A token without text, which the library doesn't have.
      places->push_back(changed.size() == 0 ? TextRange{0, 0} : place_of(*alignment, changed));
    }
  }
}

void JsonTokenizer::encode_segment(std::string_view text,
                                   bool at_start,
                                   Alignment* alignment,
                                   std::vector<int32_t>& ids,
                                   Places* places) const {
  std::string normalized;
  if (!normalizer_.changes_nothing()) {
    normalized = text;
    normalizer_.apply(normalized, at_start, alignment);
    text = normalized;
  }
  for (const TextPart& part : added_.split(text, true)) {
    if (part.token != nullptr) {
      ids.push_back(part.token->id);
      if (places != nullptr) places->push_back(place_of(*alignment, part.range));
      continue;
    }
    const bool starts = at_start && part.range.begin == 0;
    if (alignment == nullptr) {
      encode_text(part.range.in(text), starts, nullptr, ids, nullptr);
    } else {
      const auto first = alignment->begin();
      Alignment of_part(first + static_cast<std::ptrdiff_t>(part.range.begin),
                        first + static_cast<std::ptrdiff_t>(part.range.end));
      encode_text(part.range.in(text), starts, &of_part, ids, places);
    }
  }
}

std::vector<int32_t> JsonTokenizer::encode_plain(std::string_view text, Places* places) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 8);
  for (const TextPart& part : added_.split(text, false)) {
    const bool at_start = part.range.begin == 0;
    if (part.token != nullptr) {
      ids.push_back(part.token->id);
      if (places != nullptr) places->push_back(part.range);
    } else if (places == nullptr) {
      encode_segment(part.range.in(text), at_start, nullptr, ids, nullptr);
    } else {
      Alignment alignment = align_characters(part.range.in(text), part.range.begin);
      encode_segment(part.range.in(text), at_start, &alignment, ids, places);
    }
  }
  return ids;
}

std::vector<int32_t> JsonTokenizer::encode_repaired(std::string_view text) const {
  if (is_valid_utf8(text)) return encode_plain(text, nullptr);
  return encode_plain(replace_invalid_utf8(text), nullptr);
}

std::vector<int32_t> JsonTokenizer::encode(std::string_view text, bool add_special) const {
  std::vector<int32_t> ids = encode_repaired(text);
  post_processor_.apply(ids, add_special);
  return ids;
}

TypedIds JsonTokenizer::encode_typed(std::string_view text,
                                     std::optional<std::string_view> pair,
                                     bool add_special) const {
  if (!pair) return post_processor_.apply_single(encode_repaired(text), add_special);
  return post_processor_.apply_pair(encode_repaired(text), encode_repaired(*pair), add_special);
}

std::vector<TextSpan> JsonTokenizer::spans(std::string_view text, bool add_special) const {
  Places places;
  std::vector<int32_t> ids = encode_plain(text, &places);
  // Characters that begin before each byte.
  std::vector<int64_t> num_before(text.size() + 1, 0);
  for (size_t i = 0; i < text.size(); ++i) {
    num_before[i + 1] = num_before[i] + (starts_character(text[i]) ? 1 : 0);
  }
  std::vector<TextSpan> spans;
  spans.reserve(places.size());
  for (const TextRange& place : places) {
    spans.push_back({.start = num_before[place.begin], .stop = num_before[place.end]});
  }
  post_processor_.apply(ids, add_special, &spans, [this](int32_t id) { return token_of(id); });
  return spans;
}

// What the decoder gets for `id`: an added token in its normalised form.
std::optional<std::string_view> JsonTokenizer::decoded_token(int32_t id) const {
  if (const AddedToken* added = added_.find(id)) return added->normalized_content;
  if (!model_->vocabulary().has_id(id)) return std::nullopt;
  return model_->vocabulary().token_of(id);
}

void JsonTokenizer::append_bytes(int32_t id, bool at_start, std::string& out) const {
  if (const auto token = decoded_token(id)) decoder_.append(*token, at_start, out);
}

class JsonTokenizer::DecodedText final : public RunningText {
 public:
  DecodedText(const JsonTokenizer& tokenizer, bool at_start)
      : tokenizer_(tokenizer), run_(tokenizer.decoder_.run(at_start)) {}

  void push(int32_t id, std::string& out) override {
    if (const auto token = tokenizer_.decoded_token(id)) run_.push(*token, out);
  }
  void finish(std::string& out) override {
    run_.finish(out);
    run_ = tokenizer_.decoder_.run(false);
  }

 private:
  const JsonTokenizer& tokenizer_;
  DecoderRun run_;
};

// Holds back what the last token alone is written without.
class JsonTokenizer::OpenText final : public RunningText {
 public:
  OpenText(const JsonTokenizer& tokenizer, bool at_start)
      : tokenizer_(tokenizer), at_start_(at_start) {}

  void push(int32_t id, std::string& out) override {
    const auto token = tokenizer_.decoded_token(id);
    if (!token) return;
    out += std::exchange(if_more_, "");
    std::string last;
    tokenizer_.decoder_.append(*token, at_start_, if_more_);
    tokenizer_.decoder_.append_last(*token, at_start_, last);
    at_start_ = false;
    const auto certain = std::ranges::mismatch(if_more_, last).in1 - if_more_.begin();
    out.append(if_more_, 0, static_cast<size_t>(certain));
    if_more_.erase(0, static_cast<size_t>(certain));
    if_last_ = last.substr(static_cast<size_t>(certain));
  }
  void finish(std::string& out) override {
    out += std::exchange(if_last_, "");
    if_more_.clear();
  }

 private:
  const JsonTokenizer& tokenizer_;
  bool at_start_;
  std::string if_more_;  // what follows of the text when another token comes
  std::string if_last_;  // and when none does
};

std::unique_ptr<RunningText> JsonTokenizer::running_text(bool at_start) const {
  if (!decoder_.is_token_wise()) return std::make_unique<DecodedText>(*this, at_start);
  if (decoder_.ends_unlike()) return std::make_unique<OpenText>(*this, at_start);
  return nullptr;
}

std::string JsonTokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::vector<std::string_view> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    if (skip_special && is_special(id)) continue;
    if (const auto token = decoded_token(id)) tokens.push_back(*token);
  }
  return decoder_.decode(tokens);
}

bool JsonTokenizer::is_special(int32_t id) const {
  const AddedToken* added = added_.find(id);
  return (added != nullptr && added->special) || special_copies_.contains(id);
}

std::optional<int32_t> JsonTokenizer::id_of(std::string_view token) const {
  if (const auto id = added_.id_of(token)) return id;
  return model_->vocabulary().id_of(token);
}

std::string JsonTokenizer::token_of(int32_t id) const {
  if (const AddedToken* added = added_.find(id)) return added->content;
  return std::string(model_->vocabulary().token_of(id));
}

int32_t JsonTokenizer::vocab_size() const {
  return std::max(model_->vocabulary().highest_id(), added_.highest_id()) + 1;
}

}  // namespace tgi
