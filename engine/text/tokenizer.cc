#include "engine/text/tokenizer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_source.h"
#include "engine/text/bpe_tokenizer.h"
#include "engine/text/sentencepiece_tokenizer.h"
#include "engine/text/tokenizer_config.h"

namespace tgi {
namespace {

template <typename T>
std::unique_ptr<Tokenizer> load_as(const FileSource& files,
                                   const std::string& name,
                                   std::string_view contents,
                                   const TokenizerConfig& config) {
  try {
    return std::make_unique<T>(contents, config);
  } catch (const Error& error) {
    throw error.in(files.describe(name));
  }
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const FileSource& files) {
  const TokenizerConfig config = read_tokenizer_config(files);
  if (const auto json = files.find_text("tokenizer.json")) {
    return load_as<BpeTokenizer>(files, "tokenizer.json", *json, config);
  }
  if (const auto model = files.find_text("tokenizer.model")) {
    return load_as<SentencePieceTokenizer>(files, "tokenizer.model", *model, config);
  }
  throw Error(Code::kNotFound,
              fmt::format("{}: no such file, nor is there a tokenizer.model beside it",
                          files.describe("tokenizer.json")));
}

}  // namespace tgi
