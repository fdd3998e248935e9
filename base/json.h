// Reading JSON that others wrote: every error names the path of the offending value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/nlohmann_json.h"

namespace tgi {

using Json = nlohmann::json;

// Parses one document. Throws kInvalidArgument with line and column on a syntax error, on invalid
// UTF-8 in a string and when objects and arrays nest deeper than `max_depth`.
Json parse_json(std::string_view text, int max_depth = 64);

// Reads the members of one object. Holds a reference: the document must outlive the reader. The
// path (dotted, as in "rope_scaling.factor") is only for messages. A member that is null counts as
// absent.
class JsonReader {
 public:
  JsonReader(const Json& object, std::string path);

  bool has(std::string_view key) const;

  // Absent: throws kInvalidArgument. Wrong type or out of range: throws kInvalidArgument.
  std::string string(std::string_view key) const;
  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  bool boolean(std::string_view key) const;
  JsonReader object(std::string_view key) const;

  std::string string_or(std::string_view key, std::string fallback) const;
  int64_t integer_or(std::string_view key, int64_t fallback) const;
  double number_or(std::string_view key, double fallback) const;
  bool boolean_or(std::string_view key, bool fallback) const;
  std::optional<std::string> optional_string(std::string_view key) const;
  std::optional<int64_t> optional_integer(std::string_view key) const;
  std::optional<double> optional_number(std::string_view key) const;
  std::vector<std::string> strings_or_empty(std::string_view key) const;

  // Throws kInvalidArgument naming the first member that is not in `known`, with the list of known
  // ones.
  void refuse_unknown(const std::vector<std::string_view>& known) const;

  std::string path_of(std::string_view key) const;
  const Json& json() const { return *object_; }
  // Reads another object as if it stood at this one's place.
  JsonReader in_place(const Json& object) const { return {object, path_}; }

 private:
  const Json* find(std::string_view key) const;
  const Json& require(std::string_view key) const;

  const Json* object_;
  std::string path_;
};

}  // namespace tgi
