#include "engine/text/tokenizer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/file_source.h"
#include "base/log.h"
#include "engine/text/tokenizer/json_tokenizer.h"
#include "engine/text/tokenizer/sentencepiece_tokenizer.h"
#include "engine/text/tokenizer/tokenizer_config.h"
#include "engine/text/tokenizer/vocab_merges.h"
#include "engine/text/tokenizer/vocab_txt.h"

namespace tgi {
namespace {

template <typename Load>
std::unique_ptr<Tokenizer> load_from(const FileSource& files,
                                     const std::string& name,
                                     const Load& load) {
  try {
    return load();
  } catch (const Error& error) {
    throw error.in(files.describe(name));
  }
}

// tokenizer.model, where tokenizer.json needs what this build doesn't have.
template <typename Load>
std::unique_ptr<Tokenizer> load_instead(const Error& unsupported, const Load& load_model) {
  std::unique_ptr<Tokenizer> tokenizer;
  try {
    tokenizer = load_model();
  } catch (const Error& error) {
    throw Error(Code::kUnsupported, fmt::format("{}; nor can the file beside it be used: {}",
                                                unsupported.what(), error.what()));
  }
  log_warn("tokenizer.json can't be used, tokenizer.model beside it is",
           {{"reason", unsupported.what()}});
  return tokenizer;
}

}  // namespace

bool has_tokenizer(const FileSource& files) {
  return files.find("tokenizer.json") || files.find("tokenizer.model") || files.find("vocab.txt") ||
         (files.find("vocab.json") && files.find("merges.txt"));
}

std::unique_ptr<Tokenizer> load_tokenizer(const FileSource& files) {
  const TokenizerConfig config = read_tokenizer_config(files);
  const auto json = files.find_text("tokenizer.json");
  const auto model = files.find_text("tokenizer.model");
  const auto load_model = [&] {
    return load_from(files, "tokenizer.model",
                     [&] { return std::make_unique<SentencePieceTokenizer>(*model, config); });
  };
  if (json) {
    try {
      return load_from(files, "tokenizer.json",
                       [&] { return std::make_unique<JsonTokenizer>(*json, config); });
    } catch (const Error& error) {
      // A file that is broken, not merely unknown to this build, is for the user to mend.
      if (error.code() != Code::kUnsupported || !model) throw;
      return load_instead(error, load_model);
    }
  }
  if (model) return load_model();
  if (const auto vocab = files.find_text("vocab.txt")) {
    const VocabTxtConfig more = read_vocab_txt_config(files);
    return load_from(files, "vocab.txt", [&] {
      return std::make_unique<JsonTokenizer>(read_vocab_txt(*vocab, config, more), config);
    });
  }
  if (files.find("vocab.json") && files.find("merges.txt")) {
    return std::make_unique<JsonTokenizer>(
        read_vocab_merges(files, config, read_vocab_merges_config(files)), config);
  }
  throw Error(Code::kNotFound,
              fmt::format("{}: no such file, nor is there a tokenizer.model, a vocab.txt, or a "
                          "vocab.json with its merges.txt beside it",
                          files.describe("tokenizer.json")));
}

}  // namespace tgi
