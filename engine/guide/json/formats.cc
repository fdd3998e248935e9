#include "engine/guide/json/formats.h"

#include <vector>

#include "engine/guide/json/refusal.h"

namespace tgi::guide {
namespace {

// RFC 3987 and RFC 6570: but for private use and what is no character.
constexpr const char* kLettersBeyondAscii =
    "\\u{A0}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}"
    "\\u{10000}-\\u{1FFFD}\\u{20000}-\\u{2FFFD}\\u{30000}-\\u{3FFFD}\\u{40000}-\\u{4FFFD}"
    "\\u{50000}-\\u{5FFFD}\\u{60000}-\\u{6FFFD}\\u{70000}-\\u{7FFFD}\\u{80000}-\\u{8FFFD}"
    "\\u{90000}-\\u{9FFFD}\\u{A0000}-\\u{AFFFD}\\u{B0000}-\\u{BFFFD}\\u{C0000}-\\u{CFFFD}"
    "\\u{D0000}-\\u{DFFFD}\\u{E1000}-\\u{EFFFD}";
constexpr const char* kPrivateUse =
    "\\u{E000}-\\u{F8FF}\\u{F0000}-\\u{FFFFD}\\u{100000}-\\u{10FFFD}";

std::string any_of(std::string_view a, std::string_view b) {
  return "(?:" + std::string(a) + "|" + std::string(b) + ")";
}

std::string times(std::string_view part, std::string_view count) {
  return "(?:" + std::string(part) + ")" + std::string(count);
}

// RFC 3339, with the days that each month has and leap days of leap years. Not the year 0, which
// many libraries do not read.
std::string date() {
  const std::string leap =
      "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29";
  const std::string any_year =
      "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|"
      "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))";
  return "(?!0000)" + any_of(any_year, leap);
}

// Leap seconds only where UTC has them, and written in UTC. Fractions of at most 15
// digits: nobody reads more, and a model could go on for ever.
std::string time() {
  return "(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,15})?"
         "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])|"
         "23:59:60(?:\\.[0-9]{1,15})?(?:[Zz]|[+-]00:00))";
}

std::string duration() {
  const std::string clock = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
  return "P(?:[0-9]+W|(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)(?:" + clock +
         ")?|" + clock + ")";
}

std::string ipv4() {
  const std::string byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return byte + times("\\." + byte, "{3}");
}

// RFC 4291: the eight groups, or "::" for one run of zeros.
std::string ipv6() {
  const std::string group = "[0-9A-Fa-f]{1,4}";
  const std::string colon_group = ":" + group;
  const auto groups_after = [&](int most) {
    return times(colon_group, "{1," + std::to_string(most) + "}");
  };
  std::string all = times(group + ":", "{7}") + group;
  all += "|" + times(group + ":", "{6}") + ipv4();
  all += "|:(?::|" + groups_after(7) + ")";
  for (int before = 1; before <= 6; ++before) {
    all += "|" + group + times(colon_group, "{" + std::to_string(before - 1) + "}") + ":(?::|" +
           (7 - before > 0 ? groups_after(7 - before) : std::string()) + ")";
  }
  all += "|" + times(group + ":", "{7}") + ":";
  // The last two groups as an IPv4 address, after "::".
  for (int before = 0; before <= 5; ++before) {
    const std::string head =
        before == 0 ? ":"
                    : group + times(colon_group, "{" + std::to_string(before - 1) + "}") + ":";
    const int most = 5 - before;
    const std::string between =
        most > 0 ? times(group + ":", "{0," + std::to_string(most) + "}") : std::string();
    all += "|" + head + ":" + between + ipv4();
  }
  return "(?:" + all + ")";
}

// Labels of RFC 1123 without those that RFC 5890 reserves (hyphens at the third and fourth place).
// At most 253 characters: three labels of any length, or eight that are not the longest.
std::string hostname() {
  const auto label = [](int most) {
    const std::string inner = "[A-Za-z0-9-]";
    const std::string outer = "[A-Za-z0-9]";
    const auto up_to = [](int count) { return "{0," + std::to_string(count) + "}"; };
    return outer + "(?:" + outer + "|" + inner + outer + "|" + inner + outer + inner +
           up_to(most - 4) + outer + "|" + inner + "-" + outer + "(?:" + inner + up_to(most - 5) +
           outer + ")?)?";
  };
  const std::string any = label(63);
  const std::string shorter = label(30);
  return any_of(any + times("\\." + any, "{0,2}"), shorter + times("\\." + shorter, "{0,7}"));
}

// RFC 5321: at most 64 characters before the "@", which readers check.
std::string email(std::string_view more_characters) {
  const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~" + std::string(more_characters) + "-]+";
  return "(?=[^@]{1,64}@)" + atom + times("\\." + atom, "*") + "@(?:" + hostname() + "|\\[" +
         ipv4() + "\\]|\\[IPv6:" + ipv6() + "\\])";
}

// RFC 3986, or with characters beyond ASCII RFC 3987.
std::string uri(bool may_be_relative, bool is_iri) {
  const std::string more = is_iri ? std::string(kLettersBeyondAscii) : std::string();
  const std::string escape = "%[0-9A-Fa-f]{2}";
  const std::string plain = "A-Za-z0-9._~!$&'()*+,;=" + more;
  const auto some = [&](const std::string& extra, std::string_view count) {
    return times("[" + plain + extra + "-]|" + escape, count);
  };
  const std::string host = any_of(
      "\\[(?:" + ipv6() + "|[Vv][0-9A-Fa-f]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\\]", some("", "*"));
  const std::string authority = "//(?:" + some(":", "*") + "@)?" + host + "(?::[0-9]*)?";
  const std::string segment = some(":@", "*");
  const std::string path_abempty = times("/" + segment, "*");
  const std::string path_absolute = "/(?:" + some(":@", "+") + path_abempty + ")?";
  const std::string path_rootless = some(":@", "+") + path_abempty;
  const std::string path_noscheme = some("@", "+") + path_abempty;
  const std::string query = some(":@/?" + std::string(is_iri ? kPrivateUse : ""), "*");
  const std::string tail = "(?:\\?" + query + ")?(?:#" + some(":@/?", "*") + ")?";
  const std::string scheme = "[A-Za-z][A-Za-z0-9+.-]*:";
  const std::string absolute = scheme + "(?:" + authority + path_abempty + "|" + path_absolute +
                               "|" + path_rootless + ")?" + tail;
  if (!may_be_relative) return absolute;
  return any_of(absolute, "(?:" + authority + path_abempty + "|" + path_absolute + "|" +
                              path_noscheme + ")?" + tail);
}

std::string json_pointer() {
  return times("/(?:[^~/]|~[01])*", "*");
}

// RFC 6570.
std::string uri_template() {
  const std::string name = "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+";
  const std::string variable = name + times("\\." + name, "*") + "(?:\\*|:[1-9][0-9]{0,3})?";
  const std::string expression =
      "\\{[+#./;?&=,!@|]?" + variable + times("," + variable, "*") + "\\}";
  const std::string literal = "[!#$&(-;=?-\\[\\]_a-z~" + std::string(kLettersBeyondAscii) +
                              kPrivateUse + "]|%[0-9A-Fa-f]{2}";
  return times(literal + "|" + expression, "*");
}

// {n}, {n,} and {n,m}, with one digit of n where m is given.
std::string regex_count() {
  std::string all = "(?:0|[1-9][0-9]{0,2}),?|0,(?:0|[1-9][0-9]{0,2})|[1-9],[1-9][0-9]{1,2}";
  for (int n = 1; n < 10; ++n) all += "|" + std::to_string(n) + ",[" + std::to_string(n) + "-9]";
  return "\\{(?:" + all + ")\\}";
}

// What ECMA-262 calls a pattern, with the `u` flag: without names of groups and references to them,
// of groups at most two in each other and none in assertions, ranges of letters or digits that
// begin with the first or end with the last of them.
std::string regex() {
  const std::string hex = "[0-9A-Fa-f]";
  const std::string categories =
      "C[cfnos]?|L(?:[lmotu]|C)?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?";
  const std::string escapes = "[dDwWsSfnrtv^$\\\\.*+?()\\[\\]{}|/]|c[A-Za-z]|x" + hex + "{2}|u" +
                              hex + "{4}|u\\{(?:" + hex + "{1,5}|10" + hex +
                              "{4})\\}|[pP]\\{(?:" + categories + ")\\}";
  const std::string ranges = "|a-[a-z]|[a-z]-z|A-[A-Z]|[A-Z]-Z|0-[0-9]|[0-9]-9";
  const std::string member = "(?:[^\\\\\\]\\[^-]|\\\\(?:" + escapes + "|[b-])" + ranges + ")";
  const std::string set = "\\[\\^?-?" + member + "*-?\\]";
  const std::string quantifier = "(?:(?:[*+?]|" + regex_count() + ")[?]?)?";
  const std::string single = "[^\\\\^$.*+?()\\[\\]{}|]|\\.|\\\\(?:" + escapes + ")|" + set;
  const std::string assertion = "[$^]|\\\\[bB]";
  std::string inner = times("(?:" + single + ")" + quantifier + "|" + assertion + "|\\|", "*");
  const std::string look = "\\(\\?<?[=!]" + inner + "\\)";
  for (int level = 0; level < 2; ++level) {
    const std::string group = "\\((?:\\?:)?" + inner + "\\)";
    inner = times(
        "(?:" + single + "|" + group + ")" + quantifier + "|" + assertion + "|" + look + "|\\|",
        "*");
  }
  return inner;
}

std::vector<Format> make_formats() {
  const std::string hex = "[0-9A-Fa-f]";
  const std::string base64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?";
  std::vector<Format> all = {
      {"date", date(), "", "", true},
      {"date-time", date() + "[Tt]" + time(), "", "", true},
      {"time", time(), "", "", true},
      {"duration", duration(), "", ""},
      {"uuid", hex + "{8}-" + hex + "{4}-" + hex + "{4}-" + hex + "{4}-" + hex + "{12}", "", ""},
      {"email", email(""), "", "", true},
      {"idn-email", email("\\u{80}-\\u{D7FF}\\u{E000}-\\u{10FFFF}"), "", "", true},
      {"hostname", hostname(), "", "", true},
      {"idn-hostname", hostname(), "", "", true},
      {"host-name", hostname(), "", "", true},  // of draft 3, as "ip-address"
      {"ipv4", ipv4(), "", ""},
      {"ip-address", ipv4(), "", ""},
      {"ipv6", ipv6(), "", ""},
      {"ipvanyaddress", "(?:" + ipv4() + "|" + ipv6() + ")", "", ""},  // pydantic's
      {"uri", uri(false, false), "", ""},
      {"url", uri(false, false), "", ""},
      {"uri-reference", uri(true, false), "", ""},
      {"iri", uri(false, true), "", ""},
      {"iri-reference", uri(true, true), "", ""},
      {"uri-template", uri_template(), "", ""},
      {"json-pointer", json_pointer(), "", ""},
      {"relative-json-pointer", "(?:0|[1-9][0-9]*)(?:#|" + json_pointer() + ")", "", ""},
      {"regex", regex(), "", "", true},
      {"byte", base64, "", ""},
      {"base64", base64, "", ""},
      {"base64url", "(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2,3}=*)?", "", ""},
      {"binary", "", "", ""},
      {"password", "", "", ""},
      {"path", "", "", ""},
      {"file-path", "", "", ""},
      {"directory-path", "", "", ""},
      {"int8", "", "-128", "127"},
      {"int16", "", "-32768", "32767"},
      {"int32", "", "-2147483648", "2147483647"},
      {"int64", "", "-9223372036854775808", "9223372036854775807"},
      {"uint8", "", "0", "255"},
      {"uint16", "", "0", "65535"},
      {"uint32", "", "0", "4294967295"},
      {"uint64", "", "0", "18446744073709551615"},
      {"float", "", "", ""},
      {"double", "", "", ""},
  };
  // RFC 9562; pydantic's names.
  for (const char version : std::string_view("12345678")) {
    all.push_back(
        {std::string("uuid") + version,
         hex + "{8}-" + hex + "{4}-" + version + hex + "{3}-[89ABab]" + hex + "{3}-" + hex + "{12}",
         "", ""});
  }
  return all;
}

const std::vector<Format>& formats() {
  static const std::vector<Format> all = make_formats();
  return all;
}

}  // namespace

const Format* find_format(std::string_view name) {
  for (const Format& format : formats()) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

std::string misspelt_format(std::string_view name) {
  for (const Format& format : formats()) {
    if (bare_name(format.name) == bare_name(name)) return format.name;
  }
  return "";
}

}  // namespace tgi::guide
