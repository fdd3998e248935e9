#include "engine/text/tokenizer/sentencepiece_tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/text/tokenizer/decoder.h"

namespace tgi {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";        // U+2581
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Of ChatGLM 2 and 3: what its class puts behind the pieces, and before each text. The second
// version has none of the last four, of which its texts have no tokens either.
// Source: tokenization_chatglm.py of the published models.
constexpr std::string_view kChatGlmClass = "ChatGLMTokenizer";
constexpr std::array<std::string_view, 9> kChatGlmTokens = {
    "[MASK]",   "[gMASK]",       "[sMASK]",        "sop", "eop", "<|system|>",
    "<|user|>", "<|assistant|>", "<|observation|>"};
constexpr std::array<std::string_view, 2> kChatGlmBefore = {"[gMASK]", "sop"};

// Appended to a serialised model, this overrides normalizer_spec.add_dummy_prefix (field 3 of field
// 3) with false: protocol buffers merge what comes again.
constexpr std::string_view kNoDummyPrefix("\x1A\x02\x18\x00", 4);

std::unique_ptr<sentencepiece::SentencePieceProcessor> load(std::string_view model) {
  auto processor = std::make_unique<sentencepiece::SentencePieceProcessor>();
  const auto status =
      processor->LoadFromSerializedProto(absl::string_view(model.data(), model.size()));
  if (!status.ok()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("not a sentencepiece model: {}", status.message()));
  }
  return processor;
}

std::unique_ptr<sentencepiece::SentencePieceProcessor> load_without_prefix(std::string_view model) {
  return load(std::string(model).append(kNoDummyPrefix));
}

void append_surface(std::string_view piece, std::string& out) {
  size_t begin = 0;
  for (size_t at = piece.find(kSpace); at != std::string_view::npos;
       at = piece.find(kSpace, begin)) {
    out += piece.substr(begin, at - begin);
    out += ' ';
    begin = at + kSpace.size();
  }
  out += piece.substr(begin);
}

// As the library does it: each byte that is of no character becomes U+FFFD.
void flush_bytes(std::string& bytes, std::string& out) {
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const size_t valid = valid_utf8_prefix(rest);
    out += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    out += kReplacement;
    rest.remove_prefix(1);
  }
  bytes.clear();
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(std::string_view model,
                                               const TokenizerConfig& config)
    : processor_(config.add_prefix_space ? load(model) : load_without_prefix(model)),
      num_pieces_(processor_->GetPieceSize()) {
  if (!config.legacy && config.add_prefix_space) continuing_ = load_without_prefix(model);
  add_tokens(config);
  learn_decoding();
  post_processor_ = make_post_processor(config);
}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;

void SentencePieceTokenizer::add_tokens(const TokenizerConfig& config) {
  for (int32_t id = 0; id < num_pieces_; ++id) {
    if (!processor_->IsControl(id) && !processor_->IsUnknown(id)) continue;
    AddedToken token;
    token.id = id;
    token.content = processor_->IdToPiece(id);
    token.normalized_content = token.content;
    token.special = true;
    added_.add(std::move(token));
  }
  for (AddedToken token : config.added_tokens) {
    for (const std::string& special : {config.bos_token, config.eos_token, config.unk_token}) {
      if (token.content == special) token.special = true;
    }
    added_.add(std::move(token));
  }
  if (config.tokenizer_class == kChatGlmClass) add_tokens_of_chatglm();
  added_.build();
}

void SentencePieceTokenizer::add_tokens_of_chatglm() {
  int32_t id = num_pieces_;
  for (const std::string_view name : kChatGlmTokens) {
    AddedToken token;
    token.id = id++;
    token.content = name;
    token.normalized_content = name;
    token.special = true;
    if (!added_.id_of(name)) added_.add(std::move(token));
  }
}

// The library's interface does not tell the normaliser's settings, so ask for their effect.
void SentencePieceTokenizer::learn_decoding() {
  for (int32_t id = 0; id < num_pieces_ && !drops_space_; ++id) {
    const std::string& piece = processor_->IdToPiece(id);
    if (!std::string_view(piece).starts_with(kSpace) || added_.find(id) != nullptr) continue;
    std::string kept;
    append_surface(piece, kept);
    std::string text;
    if (!processor_->Decode(std::vector<int>{id}, &text).ok()) continue;
    if (text == kept) break;
    drops_space_ = true;
  }
  const int32_t space = processor_->PieceToId(absl::string_view(kSpace.data(), kSpace.size()));
  if (!drops_space_ || processor_->IdToPiece(space) != kSpace) return;
  std::string text;
  drops_spaces_ = processor_->Decode(std::vector<int>{space, space}, &text).ok() && text.empty();
}

PostProcessor SentencePieceTokenizer::make_post_processor(const TokenizerConfig& config) const {
  if (config.tokenizer_class == kChatGlmClass) {
    std::vector<int32_t> before;
    for (const std::string_view name : kChatGlmBefore) before.push_back(id_of(name).value());
    return PostProcessor(std::move(before), {});
  }
  const auto ids_when = [this](bool wanted, const std::string& token, int32_t of_model,
                               std::string_view key) {
    std::vector<int32_t> ids;
    if (!wanted) return ids;
    const std::optional<int32_t> named = token.empty() ? std::nullopt : id_of(token);
    if (!token.empty() && !named) {
      throw Error(
          Code::kInvalidArgument,
          fmt::format("{} \"{}\" of tokenizer_config.json is not in tokenizer.model", key, token));
    }
    if (named || of_model >= 0) ids.push_back(named.value_or(of_model));
    return ids;
  };
  return PostProcessor(ids_when(config.add_bos_token.value_or(true), config.bos_token,
                                processor_->bos_id(), "bos_token"),
                       ids_when(config.add_eos_token.value_or(false), config.eos_token,
                                processor_->eos_id(), "eos_token"));
}

std::vector<int32_t> SentencePieceTokenizer::encode(std::string_view text, bool add_special) const {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = replace_invalid_utf8(text);
    text = repaired;
  }
  std::vector<int32_t> ids;
  std::vector<int> encoded;
  for (const TextPart& part : added_.split(text, false)) {
    if (part.token != nullptr) {
      ids.push_back(part.token->id);
      continue;
    }
    const bool begins = part.range.begin == 0 || continuing_ == nullptr;
    const Processor& processor = begins ? *processor_ : *continuing_;
    const std::string_view segment = part.range.in(text);
    const auto status =
        processor.Encode(absl::string_view(segment.data(), segment.size()), &encoded);
    if (!status.ok()) {
      throw Error(Code::kInvalidArgument, fmt::format("sentencepiece: {}", status.message()));
    }
    ids.insert(ids.end(), encoded.begin(), encoded.end());
  }
  post_processor_.apply(ids, add_special);
  return ids;
}

void SentencePieceTokenizer::append_bytes(int32_t id, bool at_start, std::string& out) const {
  if (const AddedToken* token = added_.find(id)) {
    out += token->content;
    return;
  }
  if (id < 0 || id >= num_pieces_) return;
  std::string_view piece = processor_->IdToPiece(id);
  if (processor_->IsByte(id)) {
    if (const auto byte = byte_of_token(piece)) out += static_cast<char>(*byte);
    return;
  }
  if (at_start && drops_space_ && piece.starts_with(kSpace)) piece.remove_prefix(kSpace.size());
  append_surface(piece, out);
}

std::string SentencePieceTokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string text;
  std::string bytes;  // the pending run of byte pieces
  bool at_start = true;
  for (const int32_t id : ids) {
    if (skip_special && is_special(id)) continue;
    if (id < 0 || id >= vocab_size()) continue;
    if (id < num_pieces_ && processor_->IsByte(id) && added_.find(id) == nullptr) {
      append_bytes(id, false, bytes);
    } else {
      flush_bytes(bytes, text);
      append_bytes(id, at_start, text);
    }
    at_start = drops_spaces_ && text.empty() && bytes.empty();
  }
  flush_bytes(bytes, text);
  return text;
}

bool SentencePieceTokenizer::is_special(int32_t id) const {
  const AddedToken* token = added_.find(id);
  return token != nullptr && token->special;
}

std::optional<int32_t> SentencePieceTokenizer::id_of(std::string_view token) const {
  if (const auto id = added_.id_of(token)) return id;
  const int32_t id = processor_->PieceToId(absl::string_view(token.data(), token.size()));
  if (id < 0 || id >= num_pieces_ || processor_->IdToPiece(id) != token) return std::nullopt;
  return id;
}

std::string SentencePieceTokenizer::token_of(int32_t id) const {
  if (const AddedToken* token = added_.find(id)) return token->content;
  return id >= 0 && id < num_pieces_ ? processor_->IdToPiece(id) : "";
}

int32_t SentencePieceTokenizer::vocab_size() const {
  return std::max(num_pieces_ - 1, added_.highest_id()) + 1;
}

}  // namespace tgi
