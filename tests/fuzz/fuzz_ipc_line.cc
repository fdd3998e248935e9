// Any bytes from a client or a daemon: the framing gives the same lines however they are cut, the
// codec throws nothing but Error{kInvalidArgument}, and what it takes comes back the same after
// another round.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ipc/line_socket.h"
#include "ipc/model_facts.h"
#include "ipc/protocol.h"
#include "ipc/quantize_job.h"

namespace {

using tgi::ipc::OrderedJson;

constexpr size_t kMaxLineBytes = 4096;

// The lines up to the first one that is refused.
std::vector<std::string> cut_lines(std::string_view bytes, size_t step) {
  tgi::ipc::LineReader reader(kMaxLineBytes);
  std::vector<std::string> lines;
  try {
    for (size_t at = 0; at < bytes.size(); at += step) {
      reader.feed(bytes.substr(at, step));
      while (auto line = reader.next()) lines.push_back(std::move(*line));
    }
  } catch (const tgi::Error& error) {
    if (error.code() != tgi::Code::kInvalidArgument) std::abort();
  }
  return lines;
}

// False when it was refused as it should be.
template <typename Action>
bool accepts(const Action& action) {
  try {
    action();
    return true;
  } catch (const tgi::Error& error) {
    if (error.code() != tgi::Code::kInvalidArgument) std::abort();
    return false;
  }
}

template <typename FromJson>
void check_round_trip(const OrderedJson& json, const FromJson& from_json) {
  OrderedJson once;
  if (!accepts([&] { once = to_json(from_json(json)); })) return;
  if (!accepts([&] {
        if (to_json(from_json(once)) != once) std::abort();
      })) {
    std::abort();  // what the codec writes it must also read
  }
}

void check_request(const std::string& line) {
  tgi::ipc::Request request;
  if (!accepts([&] { request = tgi::ipc::decode_request(line); })) return;
  check_round_trip(request.params, tgi::ipc::generate_request_from_json);
  check_round_trip(request.params, tgi::ipc::load_params_from_json);
  check_round_trip(request.params, tgi::ipc::tokenize_params_from_json);
  check_round_trip(request.params, tgi::ipc::inspect_params_from_json);
  check_round_trip(request.params, tgi::ipc::quantize_params_from_json);
  const std::string again = tgi::ipc::encode_request(request.method, request.params);
  if (tgi::ipc::decode_request(again).params != request.params) std::abort();
}

// The short way to read the line of a token says the same as the long one, which a space in front
// leads to.
void check_short_way(const std::string& line) {
  std::optional<tgi::ipc::Reply> one;
  std::optional<tgi::ipc::Reply> other;
  const bool taken = accepts([&] { one = tgi::ipc::decode_reply(line); });
  if (accepts([&] { other = tgi::ipc::decode_reply(" " + line); }) != taken) std::abort();
  if (!taken) return;
  if (one->token.has_value() != other->token.has_value()) std::abort();
  if (one->token && to_json(*one->token) != to_json(*other->token)) std::abort();
}

void check_reply(const std::string& line) {
  check_short_way(line);
  // An error line comes back as a value here and is thrown by the client.
  std::optional<tgi::ipc::Reply> reply;
  if (!accepts([&] { reply = tgi::ipc::decode_reply(line); })) return;
  if (reply->token) {
    const std::string once = tgi::ipc::encode_token_event(*reply->token);
    if (tgi::ipc::encode_token_event(*tgi::ipc::decode_reply(once).token) != once) std::abort();
  }
  if (reply->done) {
    const std::string once = tgi::ipc::encode_done_event(*reply->done);
    if (tgi::ipc::encode_done_event(*tgi::ipc::decode_reply(once).done) != once) std::abort();
  }
  if (reply->accepted) {
    const std::string once = tgi::ipc::encode_accepted_event(*reply->accepted);
    if (tgi::ipc::encode_accepted_event(*tgi::ipc::decode_reply(once).accepted) != once) {
      std::abort();
    }
  }
  if (reply->result) {
    check_round_trip(*reply->result, tgi::ipc::status_from_json);
    check_round_trip(*reply->result, tgi::ipc::tokenize_result_from_json);
    check_round_trip(*reply->result, tgi::ipc::metric_families_from_json);
    check_round_trip(*reply->result, tgi::ipc::model_facts_from_json);
  }
}

}  // namespace

// The first byte: how many bytes come at a time.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<std::string> lines = cut_lines(bytes, bytes.size() + 1);
  if (cut_lines(bytes, data[0] % 32 + 1) != lines) std::abort();
  for (const std::string& line : lines) {
    check_request(line);
    check_reply(line);
  }
  return 0;
}
