#include "base/manual/roff.h"

#include <fmt/format.h>

#include <sstream>

#include "base/version.h"

namespace tgi {
namespace {

std::string in_capitals(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::string roff_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  // A dot or quote in front would be taken for a macro.
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

std::string roff_bold(std::string_view text) {
  return fmt::format("\\fB{}\\fR", roff_escape(text));
}

std::string roff_italic(std::string_view text) {
  return fmt::format("\\fI{}\\fR", roff_escape(text));
}

std::string roff_title(std::string_view name,
                       int section,
                       std::string_view manual,
                       std::string_view summary) {
  return fmt::format(".TH {} {} \"\" \"tgi {}\" \"{}\"\n.SH NAME\n{} \\- {}\n",
                     roff_escape(in_capitals(name)), section, kVersion, manual, roff_escape(name),
                     roff_escape(summary));
}

std::string roff_section(std::string_view heading) {
  return fmt::format(".SH {}\n", roff_escape(in_capitals(heading)));
}

std::string roff_paragraphs(std::string_view text) {
  std::string out;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    out += line.empty() ? std::string(".PP\n") : roff_escape(line) + "\n";
  }
  return out;
}

std::string roff_item(std::string_view head, std::string_view text) {
  return fmt::format(".TP\n{}\n{}\n", head, roff_escape(text));
}

std::string roff_terms(std::string_view heading, std::span<const TermDoc> terms) {
  if (terms.empty()) return "";
  std::string out = roff_section(heading);
  for (const TermDoc& term : terms) out += roff_item(roff_bold(term.term), term.meaning);
  return out;
}

std::string roff_see_also(const std::vector<std::string>& pages) {
  if (pages.empty()) return "";
  std::string out = roff_section("see also");
  for (const std::string& page : pages) {
    const size_t bracket = page.find('(');
    out += fmt::format(".BR {} {}{}\n", roff_escape(page.substr(0, bracket)), page.substr(bracket),
                       &page == &pages.back() ? "" : " ,");
  }
  return out;
}

}  // namespace tgi
