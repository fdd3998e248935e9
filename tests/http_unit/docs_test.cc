// docs/grafana.json and docs/metrics.md tell of exactly the metrics there are, and another page of
// the fields that other servers have.
#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "base/nlohmann_json.h"
#include "cmd/http/native_body.h"
#include "cmd/http/openai_body.h"
#include "sample_record.h"
#include "scrape.h"
#include "tests/catch.h"

namespace tgi::http {
namespace {

using Json = nlohmann::json;

std::string file_text(const std::string& path) {
  std::ifstream file(std::string(TGI_SOURCE_DIR) + "/" + path);
  REQUIRE(file.good());
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

// After one request of each kind, so that every family has a sample.
Scrape full_scrape() {
  Metrics metrics({.max_input_tokens = 1000, .max_total_tokens = 2000, .trace_counts = [] {
                     return TraceCounts{};
                   }});
  metrics.request_started();
  metrics.first_token(0.1);
  metrics.token_gap(0.01);
  metrics.observe(sample_record());
  return parse_scrape(metrics.scrape(sample_report()));
}

std::set<std::string> words(const std::string& text, const std::regex& pattern) {
  std::set<std::string> out;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
    out.insert((*it)[1]);
  }
  return out;
}

// Every query of the dashboard: of panels, of panels in rows, of variables.
void collect_queries(const Json& json, std::vector<std::string>& out) {
  if (json.is_array()) {
    for (const Json& item : json) collect_queries(item, out);
  }
  if (!json.is_object()) return;
  for (const auto& item : json.items()) {
    const bool is_query =
        item.key() == "expr" || item.key() == "query" || item.key() == "definition";
    if (is_query && item.value().is_string()) out.push_back(item.value());
    collect_queries(item.value(), out);
  }
}

}  // namespace

TEST_CASE("docs: the sample report has the daemon's families") {
  std::set<std::string> sampled;
  for (const ipc::MetricFamily& family : sample_report()) sampled.insert(family.name);
  CHECK(sampled == words(file_text("daemon/metrics.cc"), std::regex(R"re("(tgi_\w+)")re")));
}

TEST_CASE("docs: every metric of the dashboard is scraped") {
  std::set<std::string> known;
  for (const auto& [sample, value] : full_scrape().samples) {
    known.insert(sample.substr(0, sample.find('{')));
  }
  std::vector<std::string> queries;
  collect_queries(Json::parse(file_text("docs/grafana.json")), queries);
  std::set<std::string> used;
  const std::regex name(R"(\b((?:tgi|process)_\w+))");
  for (const std::string& query : queries) used.merge(words(query, name));
  CHECK(used.size() > 20);
  for (const std::string& metric : used) {
    INFO(metric);
    CHECK(known.count(metric) == 1);
  }
}

TEST_CASE("docs: every query of the dashboard names the job and closes its brackets") {
  std::vector<std::string> queries;
  const Json dashboard = Json::parse(file_text("docs/grafana.json"));
  collect_queries(dashboard["panels"], queries);
  CHECK(queries.size() > 15);
  for (const std::string& query : queries) {
    INFO(query);
    CHECK(query.find("job=~\"$job\"") != std::string::npos);
    for (const auto& [open, close] : {std::pair{'(', ')'}, {'{', '}'}, {'[', ']'}}) {
      CHECK(std::count(query.begin(), query.end(), open) ==
            std::count(query.begin(), query.end(), close));
    }
  }
}

TEST_CASE("docs: the dashboard can be imported") {
  const Json dashboard = Json::parse(file_text("docs/grafana.json"));
  CHECK(dashboard["schemaVersion"].get<int>() >= 36);
  CHECK(dashboard["id"].is_null());
  CHECK(dashboard["templating"]["list"][0]["type"] == "datasource");
  CHECK(dashboard["templating"]["list"][0]["query"] == "prometheus");
  std::set<int> ids;
  std::set<std::pair<int, int>> places;
  for (const Json& panel : dashboard["panels"]) {
    INFO(panel["title"]);
    CHECK(ids.insert(panel["id"].get<int>()).second);
    CHECK(places.emplace(panel["gridPos"]["x"], panel["gridPos"]["y"]).second);
    CHECK(panel["gridPos"]["x"].get<int>() + panel["gridPos"]["w"].get<int>() <= 24);
    if (panel["type"] == "row") continue;
    CHECK(panel["datasource"]["uid"] == "${datasource}");
    CHECK_FALSE(panel["targets"].empty());
    CHECK_FALSE(panel["description"].get<std::string>().empty());
  }
}

TEST_CASE("docs: metrics.md tells of every metric, of the right type, and of no other") {
  const std::string page = file_text("docs/metrics.md");
  std::map<std::string, std::string> told;
  const std::regex row(R"(\n\| `(\w+)` \| (\w+) \|)");
  for (std::sregex_iterator it(page.begin(), page.end(), row), end; it != end; ++it) {
    INFO((*it)[1]);
    CHECK(told.emplace((*it)[1], (*it)[2]).second);
  }
  CHECK(told == full_scrape().types);
}

TEST_CASE("docs: metrics.md tells of every name of LoRAX's, and of no other") {
  const Metrics metrics(
      {.max_input_tokens = 1000, .max_total_tokens = 2000, .trace_counts = {}, .has_adapters = [] {
         return true;
       }});
  const Scrape scrape = parse_scrape(metrics.scrape(sample_report()));
  std::set<std::string> scraped;
  for (const auto& [name, type] : scrape.types) {
    if (name.starts_with("lorax_")) scraped.insert(name);
  }
  CHECK(scraped == words(file_text("docs/metrics.md"), std::regex(R"re(`(lorax_\w+)`)re")));
}

TEST_CASE(
    "docs: coming_from_tgi.md tells of every field that is taken or refused without being read") {
  const std::string page = file_text("docs/coming_from_tgi.md");
  const auto check = [&](std::span<const ExtraField> extras) {
    for (const ExtraField& extra : extras) {
      INFO(extra.name);
      CHECK(page.find("`" + std::string(extra.name) + "`") != std::string::npos);
    }
  };
  check(extra_fields<ChatBody>());
  check(extra_fields<CompletionBody>());
  check(extra_fields<GenerateBody>());
  check(extra_fields<GenerateParameters>());
}

}  // namespace tgi::http
