#include "engine/guide/json/refusal.h"

#include "base/ascii.h"

namespace tgi::guide {
namespace {

constexpr std::string_view kPrefix = "schema ";

// Long paths by their two ends.
std::string shown_path(std::string_view at) {
  constexpr size_t kMaxShown = 300;
  constexpr size_t kEnd = 140;
  if (at.size() <= kMaxShown) return std::string(at);
  return std::string(at.substr(0, kEnd)) + "..." + std::string(at.substr(at.size() - kEnd));
}

}  // namespace

void refuse_schema(std::string_view at, const std::string& why) {
  throw Error(Code::kUnsupported, std::string(kPrefix) + shown_path(at) + ": " + why);
}

void reject_schema(std::string_view at, const std::string& why) {
  throw Error(Code::kInvalidArgument, std::string(kPrefix) + shown_path(at) + ": " + why);
}

void reject_combinations(std::string_view at, const std::string& what) {
  reject_schema(at, what +
                        "; give the branches of oneOf, if and not a required member whose const or "
                        "enum tells them apart, write anyOf where several may hold, or make them "
                        "fewer");
}

Error with_place(const Error& error, std::string_view at) {
  if (std::string_view(error.what()).starts_with(kPrefix)) return error;
  return error.in(std::string(kPrefix) + shown_path(at));
}

std::string described_json(const OrderedJson& value) {
  constexpr size_t kMaxShown = 60;
  switch (value.type()) {
    case OrderedJson::value_t::null:
      return "null";
    case OrderedJson::value_t::object:
      return "an object";
    case OrderedJson::value_t::array:
      return "an array";
    case OrderedJson::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    default:
      break;
  }
  std::string text = value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown) + "...";
  return (value.is_string() ? "the string " : "the number ") + text;
}

std::string path_step(std::string_view path, std::string_view step) {
  std::string result(path);
  result += '/';
  for (const char c : step) {
    if (c == '~') {
      result += "~0";
    } else if (c == '/') {
      result += "~1";
    } else {
      result += c;
    }
  }
  return result;
}

std::string bare_name(std::string_view name) {
  std::string left;
  for (const char c : ascii_lower(name)) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) left += c;
  }
  return left;
}

}  // namespace tgi::guide
