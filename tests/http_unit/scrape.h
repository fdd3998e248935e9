// A strict reader of Prometheus' text format 0.0.4, for tests.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tgi::http {

struct Scrape {
  std::map<std::string, std::string> types;  // of families, by name
  std::map<std::string, double> samples;     // by name with labels, as written
};

// Throws std::runtime_error naming the line: one that is not of the format, a family told twice, a
// sample outside its family or told twice, a histogram whose buckets fall or don't end in +Inf.
Scrape parse_scrape(std::string_view text);

// The value of a sample such as `tgi_request_failure{err="overloaded"}`. Throws when there is none.
double value_of(const Scrape& scrape, const std::string& sample);

}  // namespace tgi::http
