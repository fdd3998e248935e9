// The JSON-Schema-Test-Suite: what compiles accepts the valid instances and no others.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nlohmann_json.h"
#include "engine/guide/json_schema.h"
#include "tests/catch.h"
#include "tests/guide/byte_matcher.h"
#include "tests/guide/json_writings.h"
#include "tests/guide/naive_recogniser.h"
#include "tests/shared_data.h"

namespace tgi::guide {
namespace {

using nlohmann::ordered_json;

const std::string kSuite = "schemas/JSON-Schema-Test-Suite/tests/";

struct Tally {
  int num_cases = 0;
  int num_compiled = 0;   // cases of schemas that compile
  int num_by_policy = 0;  // valid and not written, by one of the rules below
  std::vector<std::string> wrong;
  std::map<std::string, int> refused;  // cases by keyword
};

std::string keyword_of(const std::string& message) {
  const std::string path = message.substr(7, message.find(':') - 7);
  return path.substr(path.rfind('/') + 1);
}

// Valid instances that are not written, each by its rule.
bool is_left_out(const std::string& file, const ordered_json& instance) {
  // `format` is enforced here; the required part of the suite takes it for a description.
  if (file == "format.json") return true;
  if (!instance.is_string()) return false;
  const std::string text = instance.get<std::string>();
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  const auto is_beyond_ascii = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  // Leap seconds in UTC only.
  if (file == "time.json" || file == "date-time.json") return has(":60");
  // Host names without internationalised labels, in either of their forms; of more than three
  // labels none is longer than 30 characters.
  const bool is_host = file == "hostname.json" || file == "idn-hostname.json";
  const bool is_email = file == "email.json" || file == "idn-email.json";
  if (is_host || is_email) {
    const std::string host = is_host ? text : text.substr(text.rfind('@') + 1);
    return has("xn--") || std::any_of(host.begin(), host.end(), is_beyond_ascii) ||
           host.size() > 200 || (is_email && text[0] == '"');  // no quoted local parts
  }
  // Patterns without names of groups.
  if (file == "ecmascript-regex.json") return has("(?<n");
  // RFC 6570 has no apostrophes in literals, but for an erratum.
  return file == "uri-template.json" && has("'");
}

void run_group(const std::string& file,
               const ordered_json& group,
               const std::string& dialect,
               Tally& tally) {
  // The folder of a draft says which dialect is meant.
  ordered_json schema = group.at("schema");
  if (schema.is_object() && !schema.contains("$schema")) schema["$schema"] = dialect;
  const std::string name = file + ": " + group.at("description").get<std::string>();
  const auto num_cases = static_cast<int>(group.at("tests").size());
  tally.num_cases += num_cases;
  Grammar grammar;
  try {
    grammar.set_start(add_json_schema(grammar, schema));
  } catch (const Error& error) {
    const std::string message = error.what();
    const bool is_unsatisfiable = message.find("no value satisfies") != std::string::npos;
    if (is_unsatisfiable) {
      tally.num_compiled += num_cases;  // no text of it is valid: the suite says so too
      for (const ordered_json& test : group.at("tests")) {
        if (test.at("valid").get<bool>()) tally.wrong.push_back(name + ": " + message);
      }
      return;
    }
    if (std::getenv("TGI_SUITE_VERBOSE") != nullptr)
      std::cout << name << "\n    " << message << "\n";
    tally.refused[keyword_of(message)] += num_cases;
    return;
  }
  tally.num_compiled += num_cases;
  NaiveRecogniser recogniser(grammar);
  const std::shared_ptr<const CompiledGrammar> compiled = compile_grammar(grammar);
  for (const ordered_json& test : group.at("tests")) {
    const std::vector<std::string> texts = json_writings(test.at("data"));
    const bool is_accepted = std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
      const bool is_given = recogniser.accepts(text);
      if (accepts_bytes(compiled, text) != is_given) {
        tally.wrong.push_back(name + ": the matcher differs from the grammar at " + text);
      }
      return is_given;
    });
    const bool is_valid = test.at("valid").get<bool>();
    if (is_accepted == is_valid) continue;
    // What is in a string is described, not enforced.
    if (!is_valid && file == "content.json") continue;
    if (is_valid && is_left_out(file, test.at("data"))) {
      ++tally.num_by_policy;
      continue;
    }
    tally.wrong.push_back(name + ": " + test.at("description").get<std::string>() + ": " +
                          texts.front().substr(0, 200) +
                          (is_valid ? " is refused" : " is accepted"));
  }
}

// The schema with the other documents of the suite in it, as the refusal of a reference to one
// says.
ordered_json bundled(ordered_json schema, const std::string& draft) {
  const std::string root = shared_data_dir() + "/schemas/JSON-Schema-Test-Suite/remotes";
  ordered_json& bundle = schema[draft == "draft7" ? "definitions" : "$defs"];
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string path = entry.path().lexically_relative(root).string();
    const bool is_of_another = path.starts_with("draft") && !path.starts_with(draft + "/");
    if (is_of_another || path.starts_with("v1") || entry.path().extension() != ".json") continue;
    std::ifstream stream(entry.path());
    ordered_json document = ordered_json::parse(stream);
    if (!document.is_object() || document.contains("$id")) continue;  // found by another name
    document["$id"] = "http://localhost:1234/" + path;
    bundle[path] = std::move(document);
  }
  return schema;
}

std::string dialect_of(const std::string& draft) {
  return draft == "draft7" ? "http://json-schema.org/draft-07/schema#"
                           : "https://json-schema.org/draft/2020-12/schema";
}

Tally run_folder(const std::string& draft, const std::string& part) {
  const std::string folder = shared_data_dir() + "/" + kSuite + draft + part;
  Tally tally;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& path : files) {
    std::ifstream stream(path);
    for (const ordered_json& group : ordered_json::parse(stream)) {
      run_group(path.filename().string(), group, dialect_of(draft), tally);
    }
  }
  return tally;
}

void report(const std::string& name, const Tally& tally) {
  std::cout << name << ": " << tally.num_compiled << " of " << tally.num_cases
            << " cases have a schema that compiles; " << tally.num_by_policy
            << " valid instances are not written by a rule\n";
  for (const auto& [keyword, cases] : tally.refused) {
    std::cout << "    refused at " << keyword << ": " << cases << "\n";
  }
  for (const std::string& wrong : tally.wrong) UNSCOPED_INFO(wrong);
  CHECK(tally.wrong.empty());
}

}  // namespace

TEST_CASE("what compiles of the official suite accepts its valid instances only", "[json_suite]") {
  for (const std::string draft : {"draft2020-12", "draft7"}) {
    if (!has_shared_data(kSuite + draft)) return;
    const Tally tally = run_folder(draft, "");
    report(draft, tally);
    CHECK(tally.num_compiled * 10 >= tally.num_cases * 9);
  }
}

TEST_CASE(
    "references to other documents of the official suite work when these are put into the schema",
    "[json_suite]") {
  for (const std::string draft : {"draft2020-12", "draft7"}) {
    if (!has_shared_data(kSuite + draft)) return;
    std::ifstream stream(shared_data_dir() + "/" + kSuite + draft + "/refRemote.json");
    Tally tally;
    for (ordered_json group : ordered_json::parse(stream)) {
      group["schema"] = bundled(group["schema"], draft);
      run_group("refRemote.json", group, dialect_of(draft), tally);
    }
    report(draft + " with other documents put in", tally);
    CHECK(tally.num_compiled * 10 >= tally.num_cases * 7);
  }
}

TEST_CASE("formats of the official suite", "[json_formats]") {
  for (const std::string draft : {"draft2020-12", "draft7"}) {
    if (!has_shared_data(kSuite + draft)) return;
    report(draft + " formats", run_folder(draft, "/optional/format"));
  }
}

TEST_CASE("optional parts of the official suite", "[json_optional]") {
  for (const std::string draft : {"draft2020-12", "draft7"}) {
    if (!has_shared_data(kSuite + draft)) return;
    report(draft + " optional", run_folder(draft, "/optional"));
  }
}

}  // namespace tgi::guide
