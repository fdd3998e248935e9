#include "scrape.h"

#include <limits>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace tgi::http {
namespace {

const std::regex kComment(R"(# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+))");
const std::regex kSample(
    R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{([a-zA-Z_][a-zA-Z0-9_]*="([^"\\]|\\["\\n])*",?)*\})? (\S+))re");

double number(const std::string& text) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  size_t used = 0;
  const double value = std::stod(text, &used);
  if (used != text.size()) throw std::invalid_argument(text);
  return value;
}

class Reader {
 public:
  void read(const std::string& line) {
    std::smatch match;
    if (std::regex_match(line, match, kComment)) {
      if (match[1] == "HELP") return;
      family_ = match[2];
      type_ = match[3];
      if (!out_.types.emplace(family_, type_).second) fail("told twice");
      return;
    }
    if (!std::regex_match(line, match, kSample)) fail("not of the format");
    const std::string name = match[1];
    const std::string labels = match[2];
    const double value = number(match[5]);
    if (!belongs(name)) fail("outside its family");
    if (!out_.samples.emplace(name + labels, value).second) fail("sample told twice");
    if (type_ == "histogram" && name == family_ + "_bucket") add_bucket(labels, value);
  }

  Scrape finish() {
    for (const auto& [count, buckets] : buckets_) {
      for (size_t i = 1; i < buckets.size(); ++i) {
        if (buckets[i].first <= buckets[i - 1].first) throw std::runtime_error(count + ": bounds");
        if (buckets[i].second < buckets[i - 1].second) throw std::runtime_error(count + ": falls");
      }
      if (buckets.back().first != std::numeric_limits<double>::infinity() ||
          buckets.back().second != value_of(out_, count)) {
        throw std::runtime_error(count + ": is not the bucket +Inf");
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] static void fail(const char* what) { throw std::runtime_error(what); }

  bool belongs(const std::string& name) const {
    if (type_ == "summary") return name == family_ + "_sum" || name == family_ + "_count";
    if (type_ != "histogram") return name == family_;
    return name == family_ + "_bucket" || name == family_ + "_sum" || name == family_ + "_count";
  }

  void add_bucket(const std::string& labels, double count) {
    std::smatch match;
    static const std::regex bound_label(R"re(,?le="([^"]*)")re");
    if (!std::regex_search(labels, match, bound_label)) fail("a bucket without its bound");
    std::string others = match.prefix().str() + match.suffix().str();
    if (others == "{}") others.clear();
    buckets_[family_ + "_count" + others].emplace_back(number(match[1]), count);
  }

  Scrape out_;
  std::string family_;
  std::string type_;
  // Bounds and counts as they came, by the sample that holds their total.
  std::map<std::string, std::vector<std::pair<double, double>>> buckets_;
};

}  // namespace

Scrape parse_scrape(std::string_view text) {
  Reader reader;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    try {
      reader.read(line);
    } catch (const std::exception& error) {
      throw std::runtime_error(line + ": " + error.what());
    }
  }
  return reader.finish();
}

double value_of(const Scrape& scrape, const std::string& sample) {
  const auto it = scrape.samples.find(sample);
  if (it == scrape.samples.end()) throw std::runtime_error("no sample " + sample);
  return it->second;
}

}  // namespace tgi::http
