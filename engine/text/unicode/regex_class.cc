#include "engine/text/unicode/regex_class.h"

#include <fmt/format.h>

#include "base/error.h"
#include "engine/text/unicode/unicode_tables.h"

namespace tgi {
namespace {

// What Unicode 16 counts as Alphabetic or Lowercase and Unicode 14 does not, new letters aside.
constexpr std::string_view kNewerAlphabetic =
    R"(\x{363}-\x{36F}\x{897}\x{C04}\x{CF3}\x{F82}\x{F83}\x{1DD3}-\x{1DE6}\x{10D69})"
    R"(\x{10EFC}\x{11080}\x{11081}\x{11241}\x{113B8}-\x{113C0}\x{113C2}\x{113C5})"
    R"(\x{113C7}-\x{113CA}\x{113CC}\x{113CD}\x{11F00}\x{11F01}\x{11F03}\x{11F34}-\x{11F3A})"
    R"(\x{11F3E}-\x{11F40}\x{1611E}-\x{1612E}\x{1E08F})";
constexpr std::string_view kNewerLowercase =
    R"(\x{10FC}\x{A7F2}-\x{A7F4}\x{AB69}\x{1E030}-\x{1E06D})";
// The ideographs of Unicode 15 and 16. Other scripts are as old as PCRE2's.
constexpr std::string_view kNewerHan = R"(\x{2B739}\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})";

struct NameRow {
  std::string_view name;
  std::string_view members;
  std::string_view newer;  // general categories whose characters since Unicode 14 belong to it
};

// Long names of general categories, POSIX names and what Oniguruma's differ in. Everything else is
// a one- or two-letter category or a script. Categories are separated by spaces; one letter means
// all that start with it.
constexpr NameRow kNames[] = {
    {"letter", R"(\p{L})", "L"},
    {"uppercaseletter", R"(\p{Lu})", "Lu"},
    {"lowercaseletter", R"(\p{Ll})", "Ll"},
    {"titlecaseletter", R"(\p{Lt})", "Lt"},
    {"modifierletter", R"(\p{Lm})", "Lm"},
    {"otherletter", R"(\p{Lo})", "Lo"},
    {"mark", R"(\p{M})", "M"},
    {"combiningmark", R"(\p{M})", "M"},
    {"nonspacingmark", R"(\p{Mn})", "Mn"},
    {"spacingmark", R"(\p{Mc})", "Mc"},
    {"enclosingmark", R"(\p{Me})", "Me"},
    {"number", R"(\p{N})", "N"},
    {"decimalnumber", R"(\p{Nd})", "Nd"},
    {"letternumber", R"(\p{Nl})", "Nl"},
    {"othernumber", R"(\p{No})", "No"},
    {"punctuation", R"(\p{P})", "P"},
    {"punct", R"(\p{P})", "P"},
    {"posixpunct", R"(\p{P}\p{S})", "P S"},
    {"symbol", R"(\p{S})", "S"},
    {"mathsymbol", R"(\p{Sm})", "Sm"},
    {"currencysymbol", R"(\p{Sc})", "Sc"},
    {"modifiersymbol", R"(\p{Sk})", "Sk"},
    {"othersymbol", R"(\p{So})", "So"},
    {"separator", R"(\p{Z})", "Z"},
    {"spaceseparator", R"(\p{Zs})", "Zs"},
    {"control", R"(\p{Cc})", ""},
    {"cntrl", R"(\p{Cc})", ""},
    {"format", R"(\p{Cf})", "Cf"},
    {"any", R"(\x{0}-\x{10FFFF})", ""},
    {"ascii", R"(\x00-\x7F)", ""},
    {"alpha", R"(\p{Alphabetic})", "L Nl"},
    {"alphabetic", R"(\p{Alphabetic})", "L Nl"},
    {"digit", R"(\p{Nd})", "Nd"},
    {"alnum", R"(\p{Alphabetic}\p{Nd})", "L Nl Nd"},
    {"upper", R"(\p{Uppercase})", "Lu"},
    {"uppercase", R"(\p{Uppercase})", "Lu"},
    {"lower", R"(\p{Lowercase})", "Ll"},
    {"lowercase", R"(\p{Lowercase})", "Ll"},
    {"space", R"(\t-\r\x{85}\p{Z})", ""},
    {"whitespace", R"(\t-\r\x{85}\p{Z})", ""},
    {"blank", R"(\t\p{Zs})", ""},
    {"xdigit", "0-9A-Fa-f", ""},
    {"word", R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})", "L M Nl Nd Pc"},
};

std::string folded(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == ' ' || c == '-' || c == '_') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plain;
}

bool in_category(std::string_view category, std::string_view wanted) {
  while (!wanted.empty()) {
    const size_t end = std::min(wanted.find(' '), wanted.size());
    if (category.substr(0, end) == wanted.substr(0, end)) return true;
    wanted.remove_prefix(std::min(end + 1, wanted.size()));
  }
  return false;
}

void add_newer(std::string_view categories, std::string& members) {
  for (const CategoryRange& row : since_unicode_14()) {
    if (!in_category(row.category, categories)) continue;
    members += fmt::format("\\x{{{:X}}}-\\x{{{:X}}}", static_cast<uint32_t>(row.first),
                           static_cast<uint32_t>(row.last));
  }
}

bool is_category(std::string_view plain) {
  constexpr std::string_view kMajor = "lmnpszc";
  return plain.size() <= 2 && kMajor.find(plain[0]) != std::string_view::npos;
}

}  // namespace

NamedSet escape_set(char escape, SetPlace place, bool newer_unicode) {
  NamedSet set;
  const bool upper = escape >= 'A' && escape <= 'Z';
  const char lower = upper ? static_cast<char>(escape - 'A' + 'a') : escape;
  const auto named = [&](std::string_view name) {
    return property_set(name, place, newer_unicode);
  };
  if (lower == 's') set = named("space");
  if (lower == 'd') set = named("digit");
  if (lower == 'h') set = named("xdigit");
  if (lower == 'w') set = named("word");
  set.negated = upper;
  return set;
}

NamedSet property_set(std::string_view name, SetPlace place, bool newer_unicode) {
  NamedSet set;
  if (!name.empty() && name[0] == '^') {
    set.negated = true;
    name.remove_prefix(1);
  }
  const std::string plain = folded(name);
  for (const char c : plain) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) {
      throw Error(Code::kUnsupported, fmt::format("character property \"{}\"", name));
    }
  }
  if (plain.empty()) throw Error(Code::kUnsupported, "a character property without a name");
  const bool has_symbols = plain == "punct" && place == SetPlace::kPosix;
  for (const NameRow& row : kNames) {
    if (row.name != (has_symbols ? "posixpunct" : plain)) continue;
    set.members = row.members;
    if (row.members.find("Alphabetic") != std::string_view::npos) set.members += kNewerAlphabetic;
    if (row.members.find("Lowercase") != std::string_view::npos) set.members += kNewerLowercase;
    if (newer_unicode) add_newer(row.newer, set.members);
    if (plain == "word" && place == SetPlace::kAlone) {
      set.members += R"(\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
    }
    return set;
  }
  if (plain == "graph" || plain == "print") {
    // What is assigned, but for surrogates, controls and separators (print: keeps spaces).
    set.members = R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co})";
    if (plain == "print") set.members += R"(\p{Zs})";
    if (newer_unicode) add_newer("L M N P S Cf", set.members);
    return set;
  }
  if (plain == "c" || plain == "other" || plain == "cn" || plain == "unassigned") {
    // Complements, so that what is newer falls out of them.
    const bool unassigned = plain[0] == 'u' || plain == "cn";
    set.members = R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z})";
    if (unassigned) set.members += R"(\p{Cc}\p{Cf}\p{Co}\p{Cs})";
    if (newer_unicode) add_newer(unassigned ? "L M N P S Cf" : "L M N P S", set.members);
    set.negated = !set.negated;
    return set;
  }
  if (is_category(plain)) {
    std::string category = plain;
    category[0] = static_cast<char>(category[0] - 'a' + 'A');
    set.members = fmt::format("\\p{{{}}}", category);
    if (newer_unicode) add_newer(category, set.members);
    return set;
  }
  // A script means the script itself, not PCRE2's default, its extensions. Other properties (Emoji)
  // have a name that no script has.
  constexpr std::string_view kBinary = "emoji extendedpictographic ideographic cased math dash";
  const bool binary = kBinary.find(plain) != std::string_view::npos;
  set.members = fmt::format("\\p{{{}{}}}", binary ? "" : "sc:", plain);
  if (newer_unicode && (plain == "han" || plain == "hani")) set.members += kNewerHan;
  return set;
}

void ClassBuilder::add(const NamedSet& set) {
  if (set.negated) {
    others_.push_back("[^" + set.members + "]");
  } else {
    members_ += set.members;
  }
}

std::string ClassBuilder::take_union() {
  std::string expression;
  if (!members_.empty()) expression = "[" + members_ + "]";
  for (const std::string& other : others_) {
    if (!expression.empty()) expression += "|";
    expression += other;
  }
  const bool alternatives = others_.size() + (members_.empty() ? 0 : 1) > 1;
  members_.clear();
  others_.clear();
  if (expression.empty()) return "(?!)";
  return alternatives ? "(?:" + expression + ")" : expression;
}

void ClassBuilder::intersect() {
  operands_.push_back(take_union());
}

std::string ClassBuilder::finish(bool negated) {
  if (operands_.empty() && others_.empty() && !members_.empty()) {
    return (negated ? "[^" : "[") + members_ + "]";
  }
  std::string expression;
  for (const std::string& operand : operands_) expression += "(?=" + operand + ")";
  expression += take_union();
  if (negated) return "(?:(?!" + expression + ")(?s:.))";
  return operands_.empty() ? expression : "(?:" + expression + ")";
}

}  // namespace tgi
