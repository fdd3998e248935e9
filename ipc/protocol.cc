#include "ipc/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_syntax.h"
#include "base/utf8.h"
#include "ipc/field_table.h"

namespace tgi::ipc {
namespace {

// The names of the members of objects while a text is gone through: one that comes twice would
// count once, and which of the two nobody could tell.
class MemberNames {
 public:
  void open_object(size_t depth) { names_[depth].clear(); }

  // `written`: between its quotes.
  void add(size_t depth, std::string_view written) {
    if (written.find('\\') != std::string_view::npos) {
      const auto text = OrderedJson::parse(fmt::format("\"{}\"", written), nullptr, false);
      if (!text.is_string()) return;  // the parser says where and why
      written = spelled_.emplace_back(text.get<std::string>());
    }
    names_[depth].push_back(written);
  }

  void close_object(size_t depth, size_t at) {
    std::vector<std::string_view>& names = names_[depth];
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice == names.end()) return;
    throw Error(
        Code::kInvalidArgument,
        fmt::format("the JSON object that ends at byte {} has the member \"{}\" twice; give "
                    "it once",
                    at, twice->substr(0, valid_utf8_prefix(twice->substr(0, 100)))));
  }

 private:
  std::array<std::vector<std::string_view>, kMaxJsonDepth + 1> names_;  // of each open level
  std::deque<std::string> spelled_;                                     // those with escapes
};

// Measures the text before it is parsed: an object with very many members would cost quadratic time
// to read (members keep their order, so they are found by search), and very many small values cost
// far more memory than their text.
void check_shape(std::string_view text) {
  std::array<size_t, kMaxJsonDepth + 1> num_commas{};  // at each open level
  int depth = 0;
  size_t num_values = 0;
  size_t num_searches = 0;
  bool in_string = false;
  MemberNames names;
  size_t string_begin = 0;
  std::string_view last_string;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
      if (!in_string) last_string = text.substr(string_begin, i - string_begin);
      continue;
    }
    if (c == '"') {
      in_string = true;
      string_begin = i + 1;
    } else if (c == ':') {
      names.add(static_cast<size_t>(depth), std::exchange(last_string, {}));
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxJsonDepth) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("JSON nests deeper than {} levels at byte {}", kMaxJsonDepth, i));
      }
      num_commas[static_cast<size_t>(depth)] = 0;
      names.open_object(static_cast<size_t>(depth));
      ++num_values;
    } else if (c == '}' || c == ']') {
      if (c == '}' && depth > 0) {
        const size_t num_members = num_commas[static_cast<size_t>(depth)] + 1;
        if (num_members > kMaxJsonObjectMembers) {
          throw Error(Code::kInvalidArgument,
                      fmt::format("a JSON object has more than {} members, which is the limit",
                                  kMaxJsonObjectMembers));
        }
        num_searches += num_members * num_members / 2;
        names.close_object(static_cast<size_t>(depth), i);
      }
      if (depth > 0) --depth;
    } else if (c == ',') {
      ++num_commas[static_cast<size_t>(depth)];
      ++num_values;
    }
  }
  if (num_values > kMaxJsonValues) {
    throw Error(Code::kInvalidArgument,
                fmt::format("JSON with {} values, the limit is {}", num_values, kMaxJsonValues));
  }
  if (num_searches > kMaxJsonNameSearches) {
    throw Error(Code::kInvalidArgument, "JSON with too many objects of very many members");
  }
}

std::string dump(const OrderedJson& json) {
  try {
    return json.dump();
  } catch (const OrderedJson::exception& error) {
    throw Error(Code::kInternal, fmt::format("a reply that is not valid UTF-8: {}", error.what()));
  }
}

Error error_from_json(const OrderedJson& json) {
  require_object(json, "error");
  std::string code;
  std::string message;
  const Rules rules;
  if (json.contains("code")) read_value(json["code"], "error.code", rules, code);
  if (json.contains("message")) read_value(json["message"], "error.message", rules, message);
  return {code_from_name(code), message};
}

}  // namespace

OrderedJson parse_json(std::string_view text) {
  check_shape(text);
  try {
    return OrderedJson::parse(text);
  } catch (const OrderedJson::exception&) {
    throw json_syntax_error(text);
  }
}

template <>
std::span<const Field<Hello>> fields<Hello>() {
  static constexpr std::array kFields = {
      field<&Hello::protocol>("protocol", {.required = true}),
      field<&Hello::version>("version", {.required = true}),
  };
  return kFields;
}

std::string encode_hello(const Hello& hello) {
  return dump(write_value(hello));
}

Hello decode_hello(std::string_view line) {
  Hello hello;
  const OrderedJson json = parse_json(line);
  if (json.is_object() && json.contains("error")) throw error_from_json(json["error"]);
  read_value(json, "hello", {}, hello);
  return hello;
}

std::string encode_request(std::string_view method, const OrderedJson& params) {
  OrderedJson json = {{"method", method}};
  json["params"] = params;
  try {
    return json.dump();
  } catch (const OrderedJson::exception&) {
    throw Error(Code::kInvalidArgument, "the request holds text that is not valid UTF-8");
  }
}

Request decode_request(std::string_view line) {
  OrderedJson json = parse_json(line);
  if (!json.is_object()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("expected one request like {{\"method\": \"status\"}}, got {}",
                            json.type_name()));
  }
  Request request{.method = "", .params = OrderedJson::object()};
  for (auto& item : json.items()) {
    if (item.key() == "method") {
      read_value(item.value(), "method", {}, request.method);
    } else if (item.key() == "params") {
      if (item.value().is_null()) continue;
      require_object(item.value(), "params");
      request.params = std::move(item.value());
    } else {
      fail_field(item.key(), "unknown field; known are method, params");
    }
  }
  if (request.method.empty()) fail_field("method", "missing");
  return request;
}

std::string encode_result(const OrderedJson& result) {
  OrderedJson json;
  json["result"] = result;
  return dump(json);
}

std::string encode_error(const Error& error) {
  OrderedJson json;
  json["error"] = {{"code", code_row(error.code()).name}, {"message", error.what()}};
  // A message may quote a file name, which can be any bytes: the answer still has to go out.
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string encode_accepted_event(const AcceptedEvent& event) {
  OrderedJson json;
  json["accepted"] = to_json(event);
  return dump(json);
}

std::string encode_progress_event(const ProgressEvent& event) {
  OrderedJson json;
  json["progress"] = to_json(event);
  return dump(json);
}

std::string encode_done_event(const DoneEvent& event) {
  OrderedJson json;
  json["done"] = to_json(event);
  return dump(json);
}

Reply decode_reply(std::string_view line) {
  Reply reply;
  reply.token = try_decode_token_event(line);
  if (reply.token) return reply;
  const OrderedJson json = parse_json(line);
  if (json.is_object() && json.contains("token")) {
    read_value(json, "", {}, reply.token.emplace());
  } else if (json.is_object() && json.contains("done")) {
    reply.done = done_event_from_json(json["done"]);
  } else if (json.is_object() && json.contains("accepted")) {
    read_value(json["accepted"], "accepted", {}, reply.accepted.emplace());
  } else if (json.is_object() && json.contains("progress")) {
    read_value(json["progress"], "progress", {}, reply.progress.emplace());
  } else if (json.is_object() && json.contains("result")) {
    reply.result = json["result"];
  } else if (json.is_object() && json.contains("error")) {
    reply.error = error_from_json(json["error"]);
  } else {
    throw Error(
        Code::kInvalidArgument,
        "a reply line has none of accepted, token, done, progress, result and error; is the "
        "daemon of another version?");
  }
  return reply;
}

}  // namespace tgi::ipc
