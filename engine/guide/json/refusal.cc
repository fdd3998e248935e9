#include "engine/guide/json/refusal.h"

namespace tgi::guide {

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

}  // namespace tgi::guide
