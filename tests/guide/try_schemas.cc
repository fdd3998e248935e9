// Tries schemas: try_schemas FOLDER VOCAB_SIZE END_TOKEN < JOBS. A job is a line of JSON:
// {"schema":
// ..., "instances": [values], "answers": how many, "seed"}. For each a line comes back: the error,
// or how long the schema took, whether each instance can be written, in some order of its members,
// and random answers with few and many tokens. Of instances objects may have members that
// `properties` does not list; of answers they have not, as in a server.
// scripts/check_schemas runs it and asks another library about what comes back.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/files/file_source.h"
#include "base/nlohmann_json.h"
#include "engine/guide/json/decimal.h"
#include "engine/guide/json/json_text_regex.h"
#include "engine/guide/json_schema.h"
#include "engine/guide/machine.h"
#include "engine/guide/matcher.h"
#include "engine/text/tokenizer.h"
#include "tests/guide/byte_matcher.h"

namespace tgi::guide {
namespace {

using Json = nlohmann::ordered_json;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::shared_ptr<const CompiledGrammar> compiled(const Json& schema, bool closes_objects) {
  Grammar grammar;
  grammar.set_start(add_json_schema(grammar, schema, {.closes_objects = closes_objects}));
  return compile_grammar(grammar);
}

// Whether a value can be written, in some order of its members.
class Writer {
 public:
  Writer(const std::shared_ptr<const CompiledGrammar>& grammar, const Json& schema)
      : matcher_(grammar, byte_vocabulary()) {
    note_names(schema);
  }

  bool writes(const Json& value) {
    num_tries_ = 0;
    const bool can = takes(value) && matcher_.can_end();
    matcher_.rollback(matcher_.num_tokens());
    return can;
  }

  bool gave_up() const { return num_tries_ >= kMaxTries; }

 private:
  static constexpr int kMaxTries = 3000;

  // Names in the order of the schema, so that the first order that is tried mostly is the one.
  void note_names(const Json& schema) {
    if (schema.is_string()) places_.try_emplace(schema.get<std::string>(), places_.size());
    if (schema.is_array()) {
      for (const Json& part : schema) note_names(part);
    }
    if (!schema.is_object()) return;
    for (const auto& [name, part] : schema.items()) {
      places_.try_emplace(name, places_.size());
      note_names(part);
    }
  }

  bool takes_text(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (matcher_.accept(static_cast<unsigned char>(text[i]))) continue;
      matcher_.rollback(static_cast<int32_t>(i));
      return false;
    }
    return true;
  }

  // False: and nothing is taken.
  bool takes(const Json& value) {
    if (value.is_number()) return takes_text(Decimal::of(value).text());
    if (value.is_string()) return takes_text(quoted_json(value.get<std::string>()));
    if (!value.is_structured()) return takes_text(value.dump());
    const int32_t begin = matcher_.num_tokens();
    if (takes_text(value.is_object() ? "{" : "[")) {
      if (value.is_object() ? takes_members(value) : takes_items(value)) return true;
      matcher_.rollback(matcher_.num_tokens() - begin);
    }
    return false;
  }

  bool takes_items(const Json& value) {
    for (size_t i = 0; i < value.size(); ++i) {
      if ((i > 0 && !takes_text(",")) || !takes(value[i])) return false;
    }
    return takes_text("]");
  }

  bool takes_members(const Json& value) {
    std::vector<std::pair<size_t, std::string>> names;
    for (const auto& [name, member] : value.items()) {
      const auto place = places_.find(name);
      names.emplace_back(place == places_.end() ? places_.size() : place->second, name);
    }
    std::ranges::sort(names);
    std::vector<uint8_t> is_written(names.size(), 0);
    return takes_rest(value, names, is_written, 0);
  }

  bool takes_rest(const Json& value,
                  const std::vector<std::pair<size_t, std::string>>& names,
                  std::vector<uint8_t>& is_written,
                  size_t count) {
    if (count == names.size()) return takes_text("}");
    for (size_t i = 0; i < names.size(); ++i) {
      if (is_written[i] != 0 || ++num_tries_ > kMaxTries) continue;
      const int32_t begin = matcher_.num_tokens();
      is_written[i] = 1;
      if (takes_text((count > 0 ? "," : "") + quoted_json(names[i].second) + ":") &&
          takes(value[names[i].second]) && takes_rest(value, names, is_written, count + 1)) {
        return true;
      }
      matcher_.rollback(matcher_.num_tokens() - begin);
      is_written[i] = 0;
    }
    return false;
  }

  Matcher matcher_;
  std::unordered_map<std::string, size_t> places_;
  int num_tries_ = 0;
};

// Half of the tokens are at random, half the best of some to come to an end.
std::string answer(const std::shared_ptr<const CompiledGrammar>& grammar,
                   const std::shared_ptr<const Vocabulary>& vocabulary,
                   std::mt19937& random) {
  constexpr int64_t kLongest = 3000;
  Matcher matcher(grammar, vocabulary);
  const int64_t least = matcher.min_tokens_to_end();
  if (least > kLongest) return "";
  std::vector<uint32_t> mask((static_cast<size_t>(vocabulary->size()) + 31) / 32);
  std::vector<int32_t> ids;
  std::string text;
  const int64_t more[] = {0, 10, 60, 250};
  for (int64_t budget = std::max<int64_t>(least + more[random() % 4], 1); budget > 0; --budget) {
    if (matcher.must_end()) return text;
    matcher.fill_mask(mask, budget);
    ids.clear();
    for (int32_t id = 0; id < vocabulary->size(); ++id) {
      if ((mask[static_cast<size_t>(id) / 32] >> (id % 32) & 1) != 0) ids.push_back(id);
    }
    if (ids.empty()) throw std::runtime_error("no token may follow " + text);
    int32_t next = ids[random() % ids.size()];
    if (random() % 2 == 0) {
      int64_t least_left = Machine::kMaxTokens;
      for (int tries = 0; tries < 6; ++tries) {
        const int32_t id = ids[random() % ids.size()];
        if (!matcher.accept(id)) throw std::runtime_error("a token of the mask is not taken");
        const int64_t left = matcher.min_tokens_to_end();
        matcher.rollback(1);
        if (left < least_left) next = id;
        least_left = std::min(left, least_left);
      }
    }
    if (!matcher.accept(next)) throw std::runtime_error("a token of the mask is not taken");
    if (vocabulary->is_end_token(next)) return text;
    text += vocabulary->bytes(next);
  }
  if (!matcher.can_end()) throw std::runtime_error("not whole within its limit: " + text);
  return text;
}

// Null where that is not known.
nlohmann::json written(const Json& schema, const Json& instances) {
  nlohmann::json all = nlohmann::json::array();
  if (instances.empty()) return all;
  std::shared_ptr<const CompiledGrammar> open;
  try {
    open = compiled(schema, false);
  } catch (const Error&) {
    return all;  // what is enforced of a closed object may be too much of an open one
  }
  Writer writer(open, schema);
  for (const Json& instance : instances) {
    const bool can = writer.writes(instance);
    all.push_back(can || !writer.gave_up() ? nlohmann::json(can) : nlohmann::json(nullptr));
  }
  return all;
}

nlohmann::json run_job(const Json& job, const std::shared_ptr<const Vocabulary>& vocabulary) {
  nlohmann::json result;
  const Json& schema = job.at("schema");
  const double begin = cpu_seconds();
  try {
    const auto closed = compiled(schema, true);
    Matcher first(closed, vocabulary);
    result["min_tokens"] = first.min_tokens_to_end();
    result["compile_s"] = cpu_seconds() - begin;
    result["answers"] = nlohmann::json::array();
    std::mt19937 random(job.value("seed", 0U));
    const double start = cpu_seconds();
    for (int i = job.value("answers", 0); i > 0; --i)
      result["answers"].push_back(answer(closed, vocabulary, random));
    result["answers_s"] = cpu_seconds() - start;
    result["written"] = written(schema, job.value("instances", Json::array()));
  } catch (const std::exception& error) {
    result["error"] = error.what();
    result["error_s"] = cpu_seconds() - begin;
  }
  return result;
}

void run(char** argv) {
  const auto tokenizer = load_tokenizer(*open_folder(argv[1]));
  const auto vocabulary = Vocabulary::from(*tokenizer, std::stoi(argv[2]), {std::stoi(argv[3])});
  for (std::string line; std::getline(std::cin, line);) {
    const auto result = run_job(Json::parse(line), vocabulary);
    std::cout << result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n"
              << std::flush;
  }
}

}  // namespace
}  // namespace tgi::guide

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: try_schemas FOLDER VOCAB_SIZE END_TOKEN < JOBS\n");
    return 2;
  }
  try {
    tgi::guide::run(argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
