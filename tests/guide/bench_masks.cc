// Times masks: bench_masks FOLDER VOCAB_SIZE END_TOKEN MASKS < JOBS. A job is a line of JSON:
// {"kind": "regex"|"gbnf"|"lark"|"json_schema", "text": ..., "tokens": [[ids], ...]}. For each a
// line of JSON comes back: the error, or the processor time of compiling and, for each list of
// tokens, of each mask, in seconds, and how many tokens were accepted. The masks go to the file
// MASKS, one after the other. The masks that many grammars share are made before, as when a model
// is loaded, and timed by themselves, unless "cold" is given as well. scripts/bench/bench_masks
// runs it beside other libraries.
#include <fmt/format.h>
#include <time.h>

#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file_source.h"
#include "base/nlohmann_json.h"
#include "engine/guide/common_masks.h"
#include "engine/guide/gbnf.h"
#include "engine/guide/json_schema.h"
#include "engine/guide/lark.h"
#include "engine/guide/matcher.h"
#include "engine/text/tokenizer.h"

namespace tgi::guide {
namespace {

// Of this thread alone: what else runs on the machine does not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::shared_ptr<const CompiledGrammar> compile(const std::string& kind,
                                               const nlohmann::ordered_json& text) {
  Grammar grammar;
  if (kind == "gbnf") {
    grammar.set_start(add_gbnf(grammar, text.get<std::string>()));
  } else if (kind == "lark") {
    grammar.set_start(add_lark(grammar, text.get<std::string>()));
  } else if (kind == "regex") {
    const Rule root = grammar.declare("regex");
    grammar.define(root, grammar.terminal(parse_regex(grammar.regex(), text.get<std::string>(),
                                                      RegexUse::kWhole)));
    grammar.set_start(root);
  } else if (kind == "json_schema") {
    const auto schema =
        text.is_string() ? nlohmann::ordered_json::parse(text.get<std::string>()) : text;
    grammar.set_start(add_json_schema(grammar, schema));
  } else {
    throw std::runtime_error("unknown kind " + kind);
  }
  return compile_grammar(grammar);
}

nlohmann::json run_job(const nlohmann::ordered_json& job,
                       const std::shared_ptr<const Vocabulary>& vocabulary,
                       std::ofstream& masks) {
  nlohmann::json result;
  const double begin = cpu_seconds();
  std::shared_ptr<const CompiledGrammar> grammar;
  try {
    grammar = compile(job.at("kind").get<std::string>(), job.at("text"));
    Matcher first(grammar, vocabulary);
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
  result["compile_s"] = cpu_seconds() - begin;
  result["runs"] = nlohmann::json::array();
  std::vector<uint32_t> mask((static_cast<size_t>(vocabulary->size()) + 31) / 32);
  for (const auto& tokens : job.at("tokens")) {
    Matcher matcher(grammar, vocabulary);
    nlohmann::json times = nlohmann::json::array();
    int accepted = 0;
    for (size_t i = 0; i <= tokens.size(); ++i) {
      const double start = cpu_seconds();
      matcher.fill_mask(mask);
      times.push_back(cpu_seconds() - start);
      masks.write(reinterpret_cast<const char*>(mask.data()),
                  static_cast<std::streamsize>(mask.size() * sizeof(uint32_t)));
      if (i == tokens.size() || !matcher.accept(tokens[i].get<int32_t>())) break;
      ++accepted;
    }
    result["runs"].push_back({{"mask_s", times}, {"accepted", accepted}});
  }
  return result;
}

void run(char** argv, bool is_cold) {
  const auto tokenizer = load_tokenizer(*open_folder(argv[1]));
  const double begin = cpu_seconds();
  const auto vocabulary = Vocabulary::from(*tokenizer, std::stoi(argv[2]), {std::stoi(argv[3])});
  fmt::print(stderr, "vocabulary: {:.3f} s, {} nodes\n", cpu_seconds() - begin,
             vocabulary->trie().size());
  if (!is_cold) {
    const double start = cpu_seconds();
    make_common_masks(vocabulary);
    fmt::print(stderr, "common masks: {:.1f} ms\n", 1e3 * (cpu_seconds() - start));
  }
  std::ofstream masks(argv[4], std::ios::binary);
  for (std::string line; std::getline(std::cin, line);) {
    const auto result = run_job(nlohmann::ordered_json::parse(line), vocabulary, masks);
    std::cout << result.dump() << "\n";
  }
}

}  // namespace
}  // namespace tgi::guide

int main(int argc, char** argv) {
  const bool is_cold = argc == 6 && std::string_view(argv[5]) == "cold";
  if (argc != 5 && !is_cold) {
    fmt::print(stderr, "usage: bench_masks FOLDER VOCAB_SIZE END_TOKEN MASKS [cold] < JOBS\n");
    return 2;
  }
  try {
    tgi::guide::run(argv, is_cold);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
