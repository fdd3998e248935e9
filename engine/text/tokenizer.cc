#include "engine/text/tokenizer.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/files/file_source.h"
#include "base/log.h"
#include "engine/text/tokenizer/json_tokenizer.h"
#include "engine/text/tokenizer/rank_files.h"
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

// A file of ranks or tokenizer.model; null when there is neither.
std::unique_ptr<Tokenizer> load_model(const FileSource& files,
                                      const TokenizerConfig& config,
                                      std::string& name) {
  if (const auto ranks = find_rank_file(files)) {
    name = *ranks;
    TokenizerJson parsed = read_rank_file(files, name, config);
    return load_from(files, name,
                     [&] { return std::make_unique<JsonTokenizer>(std::move(parsed), config); });
  }
  const auto model = files.find_text("tokenizer.model");
  if (!model) return nullptr;
  name = "tokenizer.model";
  return load_from(files, name,
                   [&] { return std::make_unique<SentencePieceTokenizer>(*model, config); });
}

// The file beside a tokenizer.json that needs what this build doesn't have.
std::unique_ptr<Tokenizer> load_instead(const FileSource& files,
                                        const TokenizerConfig& config,
                                        const Error& unsupported) {
  std::unique_ptr<Tokenizer> tokenizer;
  std::string name;
  try {
    tokenizer = load_model(files, config, name);
  } catch (const Error& error) {
    throw Error(Code::kUnsupported, fmt::format("{}; nor can the file beside it be used: {}",
                                                unsupported.what(), error.what()));
  }
  if (tokenizer == nullptr) throw unsupported;
  log_warn("tokenizer.json can't be used, the file beside it is",
           {{"file", name}, {"reason", unsupported.what()}});
  return tokenizer;
}

}  // namespace

bool has_tokenizer(const FileSource& files) {
  return files.find("tokenizer.json") || files.find("tokenizer.model") || files.find("vocab.txt") ||
         (files.find("vocab.json") && files.find("merges.txt")) || find_rank_file(files);
}

std::unique_ptr<Tokenizer> load_tokenizer(const FileSource& files) {
  const TokenizerConfig config = read_tokenizer_config(files);
  const auto json = files.find_text("tokenizer.json");
  if (json) {
    try {
      return load_from(files, "tokenizer.json",
                       [&] { return std::make_unique<JsonTokenizer>(*json, config); });
    } catch (const Error& error) {
      // A file that is broken, not merely unknown to this build, is for the user to mend.
      if (error.code() != Code::kUnsupported) throw;
      return load_instead(files, config, error);
    }
  }
  std::string name;
  if (auto tokenizer = load_model(files, config, name)) return tokenizer;
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
              fmt::format("{}: no such file, nor is there a tekken.json, a tokenizer.model, a "
                          "tiktoken.model, one file .tiktoken, a vocab.txt, or a vocab.json with "
                          "its merges.txt beside it",
                          files.describe("tokenizer.json")));
}

}  // namespace tgi
