// What is wrong with a command line, in one line, and what to do about it in another.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tgi {

struct UsageComplaint {
  std::string message;  // "unknown option --temprature"
  std::string advice;   // "did you mean --temperature?"; may be empty
};

// `app` is the command whose options were parsed.
UsageComplaint explain_parse_error(const CLI::App& app, const CLI::ParseError& error);

// Both lines as `program` ("tgi load") says them, the second with where its help is.
std::string usage_text(std::string_view program, const UsageComplaint& complaint, bool color);

// The one of `known` that `word` is most likely meant to be: the fewest letters inserted, left out,
// replaced or swapped, at most a third of them, or one that it is the beginning of. Empty: none.
std::string_view nearest_word(std::string_view word, std::span<const std::string> known);

}  // namespace tgi
