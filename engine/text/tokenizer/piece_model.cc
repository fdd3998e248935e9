#include "engine/text/tokenizer/piece_model.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"
#include "base/json.h"
#include "engine/text/tokenizer/bpe_model.h"
#include "engine/text/tokenizer/component_list.h"
#include "engine/text/tokenizer/tokenizer_json.h"
#include "engine/text/tokenizer/unigram_model.h"
#include "engine/text/tokenizer/word_level_model.h"
#include "engine/text/tokenizer/wordpiece_model.h"

namespace tgi {
namespace {

void require_vocab(const TokenizerJson& parsed) {
  if (parsed.has_vocab) return;
  throw Error(Code::kInvalidArgument, "model.vocab: expected an object from token to id");
}

// Drawing ids by chance makes models robust while they are trained.
void refuse_chance(const JsonReader& model, std::string_view key) {
  if (model.number_or(key, 0) == 0) return;
  throw Error(Code::kUnsupported,
              fmt::format("{}: ids that are drawn by chance", model.path_of(key)));
}

std::unique_ptr<PieceModel> make_bpe(const JsonReader& model, TokenizerJson& parsed) {
  require_vocab(parsed);
  if (!parsed.has_merges && !parsed.is_ranked)
    throw Error(Code::kInvalidArgument, "model.merges: expected an array");
  refuse_chance(model, "dropout");
  BpeSpec spec;
  spec.vocabulary = std::move(parsed.vocabulary);
  spec.merges = std::move(parsed.merges);
  spec.unk_token = model.optional_string("unk_token");
  spec.continuing_subword_prefix = model.string_or("continuing_subword_prefix", "");
  spec.end_of_word_suffix = model.string_or("end_of_word_suffix", "");
  spec.fuse_unk = model.boolean_or("fuse_unk", false);
  spec.byte_fallback = model.boolean_or("byte_fallback", false);
  spec.ignore_merges = model.boolean_or("ignore_merges", false);
  spec.is_ranked = parsed.is_ranked;
  return std::make_unique<BpeModel>(std::move(spec));
}

std::unique_ptr<PieceModel> make_wordpiece(const JsonReader& model, TokenizerJson& parsed) {
  model.refuse_unknown(
      {"type", "vocab", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word"});
  require_vocab(parsed);
  WordPieceSpec spec;
  spec.vocabulary = std::move(parsed.vocabulary);
  spec.unk_token = model.string("unk_token");
  spec.continuing_subword_prefix = model.string("continuing_subword_prefix");
  spec.max_input_chars_per_word = model.integer("max_input_chars_per_word");
  if (spec.max_input_chars_per_word < 0) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: expected 0 or more, got {}",
                                                    model.path_of("max_input_chars_per_word"),
                                                    spec.max_input_chars_per_word));
  }
  return std::make_unique<WordPieceModel>(std::move(spec));
}

std::unique_ptr<PieceModel> make_word_level(const JsonReader& model, TokenizerJson& parsed) {
  model.refuse_unknown({"type", "vocab", "unk_token"});
  require_vocab(parsed);
  return std::make_unique<WordLevelModel>(std::move(parsed.vocabulary), model.string("unk_token"));
}

std::unique_ptr<PieceModel> make_unigram(const JsonReader& model, TokenizerJson& parsed) {
  model.refuse_unknown({"type", "vocab", "unk_id", "byte_fallback", "alpha", "nbest_size"});
  refuse_chance(model, "alpha");
  if (!parsed.has_pieces) {
    throw Error(Code::kInvalidArgument, "model.vocab: expected an array of [piece, score]");
  }
  UnigramSpec spec;
  spec.pieces = std::move(parsed.pieces);
  spec.byte_fallback = model.boolean_or("byte_fallback", false);
  if (const auto unk_id = model.optional_integer("unk_id")) {
    const auto num_pieces = static_cast<int64_t>(spec.pieces.size());
    if (*unk_id < 0 || *unk_id >= num_pieces) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: expected the id of one of the {} pieces of model.vocab, got {}",
                              model.path_of("unk_id"), num_pieces, *unk_id));
    }
    spec.unk_id = static_cast<int32_t>(*unk_id);
  }
  return std::make_unique<UnigramModel>(std::move(spec));
}

struct ModelRow {
  std::string_view type;
  std::unique_ptr<PieceModel> (*make)(const JsonReader& model, TokenizerJson& parsed);
};

constexpr ModelRow kModels[] = {
    {"BPE", make_bpe},
    {"WordPiece", make_wordpiece},
    {"WordLevel", make_word_level},
    {"Unigram", make_unigram},
};

// Files from before the field was there have none.
std::string guess_type(const JsonReader& model, const TokenizerJson& parsed) {
  if (parsed.has_merges) return "BPE";
  if (parsed.has_pieces) return "Unigram";
  if (model.has("max_input_chars_per_word")) return "WordPiece";
  return parsed.has_vocab && model.has("unk_token") ? "WordLevel" : "unnamed";
}

}  // namespace

std::unique_ptr<PieceModel> make_piece_model(TokenizerJson& parsed) {
  const JsonReader model = JsonReader(parsed.tree, "").object("model");
  const std::string type = model.string_or("type", guess_type(model, parsed));
  for (const ModelRow& row : kModels) {
    if (row.type == type) return row.make(model, parsed);
  }
  fail_unknown_type(model, type, "BPE, WordPiece, WordLevel, Unigram");
}

}  // namespace tgi
