// Any JSON as the body of each route that generates: it is read and checked, or refused with an
// ApiError of a status that is the client's fault; what goes on to the daemon is something that the
// codec of the protocol can write.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "cmd/http/native_body.h"
#include "cmd/http/openai_body.h"

namespace {

using tgi::http::OrderedJson;

tgi::http::ApiOptions options() {
  tgi::http::ApiOptions out;
  out.model_id = "demo";
  out.max_input_tokens = 1000;
  out.max_total_tokens = 1024;
  return out;
}

template <typename Action>
void check(const Action& action) {
  try {
    action();
  } catch (const tgi::http::ApiError& error) {
    if (error.status() < 400 || error.status() >= 500 || *error.what() == '\0') std::abort();
    // The text goes back to the client, whatever bytes of the body are in it.
    if (tgi::http::openai_error(error).body.empty()) std::abort();
  }
}

void check_sent(const tgi::ipc::GenerateRequest& request) {
  const std::string line = tgi::ipc::encode_request(tgi::ipc::kGenerate, to_json(request));
  if (tgi::ipc::decode_request(line).method != tgi::ipc::kGenerate) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tgi::http::ApiOptions kOptions = options();
  OrderedJson json;
  try {
    json = tgi::ipc::parse_json({reinterpret_cast<const char*>(data), size});
  } catch (const tgi::Error& error) {
    if (error.code() != tgi::Code::kInvalidArgument) std::abort();
    return 0;
  }
  check([&] {
    const auto body = tgi::http::read_body<tgi::http::GenerateBody>(json);
    const auto parameters = body.parameters.value_or(tgi::http::default_parameters());
    check_parameters(parameters, body.inputs, body.stream, kOptions);
    check_sent(to_daemon(parameters, body.inputs, body.stream, kOptions));
  });
  check([&] {
    const auto body = tgi::http::read_body<tgi::http::ChatBody>(json);
    check_sent(to_daemon(body, kOptions));
    (void)wants_usage(body);
  });
  check([&] {
    const auto body = tgi::http::read_body<tgi::http::ChatBody>(json);
    const tgi::ipc::TokenizeParams asked = to_tokenize(body);
    const std::string line = tgi::ipc::encode_request(tgi::ipc::kTokenize, to_json(asked));
    (void)tgi::ipc::tokenize_params_from_json(tgi::ipc::decode_request(line).params);
  });
  check([&] {
    const auto body = tgi::http::read_body<tgi::http::CompletionBody>(json);
    for (const auto& request : to_daemon(body, kOptions)) check_sent(request);
  });
  return 0;
}
