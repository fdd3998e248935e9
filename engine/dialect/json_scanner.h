// Finds the end of a JSON value that comes in pieces. It looks at brackets and strings alone; what
// is between them is for a parser to judge.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tgi::dialect {

class JsonScanner {
 public:
  // How many bytes at the front of `text` belong to the value. Once it has ended, none do.
  size_t feed(std::string_view text);
  bool is_done() const { return is_done_; }

 private:
  bool has_begun_ = false;
  bool is_scalar_ = false;
  bool in_string_ = false;
  bool is_escaped_ = false;
  bool is_done_ = false;
  std::string open_;  // brackets
};

bool is_json_space(char c);

// A value in Python's notation as JSON: quotes of both kinds, True, False, None, tuples. Empty
// when it is no such value.
std::string json_of_python(std::string_view literal);

// Finds the end of a value in Python's notation that comes in pieces: before a comma or a closing
// bracket that belongs to others.
class PythonScanner {
 public:
  // How many bytes at the front of `text` belong to the value.
  size_t feed(std::string_view text);
  bool is_done() const { return is_done_; }

 private:
  int depth_ = 0;
  char quote_ = '\0';
  bool is_escaped_ = false;
  bool is_done_ = false;
};

}  // namespace tgi::dialect
