#include "engine/gguf/pre_tokenizer_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/gguf/bpe_document.h"
#include "engine/gguf/pre_tokenizers.h"
#include "engine/gguf/tokenizer_probes.h"
#include "engine/text/tokenizer_parts.h"

namespace tgi::gguf {
namespace {

using Cuts = std::vector<std::vector<std::string>>;  // of each probe

Cuts cuts_of(const Json& pre_tokenizer) {
  const TextCutter cutter(pre_tokenizer);
  Cuts out;
  for (const std::string& probe : tokenizer_probes()) out.push_back(cutter.cut(probe));
  return out;
}

// Nothing or NFC, the only ones that a name stands for.
bool normalizes(const Json& tree) {
  const Json normalizer = tree.value("normalizer", Json());
  if (normalizer.is_null()) return false;
  if (normalizer.value("type", "") == "NFC") return true;
  const Json parts = normalizer.value("normalizers", Json::array());
  if (normalizer.value("type", "") == "Sequence" && parts.empty()) return false;
  if (parts.size() == 1 && parts.front().value("type", "") == "NFC") return true;
  throw Error(Code::kUnsupported,
              "the tokenizer can't be written to a GGUF file: it normalises texts by " +
                  normalizer.dump() + "; NFC or nothing can be");
}

}  // namespace

std::string pre_tokenizer_name(const Json& tree) {
  const Json& own = tree.at("pre_tokenizer");
  const Cuts expected = cuts_of(own);
  const bool has_nfc = normalizes(tree);
  const bool ignores_merges = tree.at("model").value("ignore_merges", false);
  std::string nearly;
  for (const PreTokenizer& one : all_pre_tokenizers()) {
    if (one.alphabet != TokenAlphabet::kByteLevel || one.normalizes != has_nfc) continue;
    if (one.ignore_merges != ignores_merges && !nearly.empty()) continue;
    if (cuts_of(pre_tokenizer_document(one)) != expected) continue;
    if (one.ignore_merges == ignores_merges) return std::string(one.names.front());
    nearly = one.names.front();
  }
  if (!nearly.empty()) {
    throw Error(
        Code::kUnsupported,
        fmt::format("the tokenizer can't be written to a GGUF file: such files know its cuts "
                    "as \"{}\", of which a piece that is a token is {}merged, unlike here",
                    nearly, ignores_merges ? "" : "not "));
  }
  throw Error(Code::kUnsupported,
              "the tokenizer can't be written to a GGUF file: no kind of BPE that such files know "
              "cuts texts as its pre_tokenizer does: " +
                  own.dump());
}

}  // namespace tgi::gguf
