#include "base/manual/usage.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "base/color.h"
#include "base/manual/program_doc.h"
#include "base/word_distance.h"

namespace tgi {
namespace {

std::string advise_option(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const OptionDoc& option : describe_command(app).options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  const std::string_view name = nearest_word(word.substr(0, word.find('=')), names);
  return name.empty() ? "" : fmt::format("did you mean {}?", name);
}

}  // namespace

std::string_view nearest_word(std::string_view word, std::span<const std::string> known) {
  const size_t bare = std::min(word.find_first_not_of('-'), word.size());
  const size_t num_letters = word.size() - bare;
  size_t best = std::max<size_t>(1, num_letters / 3) + 1;
  std::string_view found;
  for (const std::string& candidate : known) {
    const size_t cost = word_distance(word, candidate);
    if (cost < best) {
      best = cost;
      found = candidate;
    }
  }
  if (!found.empty() || num_letters < 3) return found;
  for (const std::string& candidate : known) {
    if (candidate.starts_with(word)) return candidate;
  }
  return {};
}

UsageComplaint explain_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  UsageComplaint out{.message = error.what(), .advice = ""};
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  // What is missing may be so since an option was mistyped.
  const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (!is_extra && !is_missing) return out;
  const std::vector<std::string> extras = app.remaining();
  const auto option = std::find_if(extras.begin(), extras.end(), [](const std::string& word) {
    return word.starts_with('-') && word.size() > 1;
  });
  if (option == extras.end()) {
    if (is_extra && !extras.empty())
      out.message = fmt::format("argument not expected: {}", extras.front());
    return out;
  }
  out.message = fmt::format("unknown option {}", *option);
  out.advice = advise_option(app, *option);
  return out;
}

std::string usage_text(std::string_view program, const UsageComplaint& complaint, bool color) {
  return fmt::format("{} {}\n{}{}see `{} --help`\n",
                     styled(fmt::format("{}:", program), Style::kRed, color), complaint.message,
                     complaint.advice, complaint.advice.empty() ? "" : " Else ", program);
}

}  // namespace tgi
