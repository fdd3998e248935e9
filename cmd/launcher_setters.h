// What the rows of the launcher table do with a value: check it, then set a field of ServeOptions
// or pass it to the daemon. All throw kInvalidArgument (expected what, got what) or kUnsupported
// (why, what to use instead); the caller says which flag or variable it was.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cmd/serve_options.h"
#include "ipc/model_settings.h"

namespace tgi {

inline constexpr int64_t kAnyCount = INT32_MAX;

int64_t parse_launcher_count(const std::string& text, int64_t low, int64_t high = kAnyCount);
double parse_launcher_number(const std::string& text, double low, double high);
std::string parse_launcher_text(const std::string& text);  // not empty

// `flag` is tgid's. Throws when another flag has given it already.
void pass_to_engine(ServeOptions& options, const std::string& flag, const std::string& value);
// What tgid would take, in the way it writes it. REQUIRES: a flag of ipc/model_settings.h.
void pass_setting(ServeOptions& options, std::string_view flag, const std::string& value);
void pass_dtype(ServeOptions& options, const char* flag, const std::string& value);

void set_backend(ServeOptions& options, const std::string& value);
void set_quantize(ServeOptions& options, const std::string& value);
void set_workers(ServeOptions& options, const std::string& value);
void set_max_total_tokens(ServeOptions& options, const std::string& value);
void set_host(ServeOptions& options, const std::string& value);
void set_port(ServeOptions& options, const std::string& value);
void set_origin(ServeOptions& options, const std::string& value);
void set_api_key(ServeOptions& options, const std::string& value);  // in no message
void set_otlp_endpoint(ServeOptions& options, const std::string& value);
void set_tokenizer_config(ServeOptions& options, const std::string& value);
void set_lora_adapter(ServeOptions& options, const std::string& value);
void set_preloaded_adapter(ServeOptions& options, const std::string& value);
void set_static_adapter(ServeOptions& options, const std::string& value);
void set_adapter_source(ServeOptions& options, const std::string& value);
// The path of the value is another one of the route.
void add_route_alias(ServeOptions& options, const std::string& value, std::string_view route);
void set_log_level(ServeOptions& options, const std::string& value);

// A limit of the gateway, and of tgid where it is more than that allows by itself.
template <auto kMember, int64_t kLow, auto kEngineMember>
void set_limit(ServeOptions& options, const std::string& value, const char* flag) {
  options.*kMember = parse_launcher_count(value, kLow);
  if (options.*kMember > ipc::ModelSettings().*kEngineMember) pass_to_engine(options, flag, value);
}

}  // namespace tgi
