// What the rows of the launcher table do with a value: check it, then set a field of ServeOptions
// or pass it to the daemon. All throw kInvalidArgument (expected what, got what) or kUnsupported
// (why, what to use instead); the caller says which flag or variable it was.
#pragma once

#include <cstdint>
#include <string>

#include "cmd/serve_options.h"

namespace tgi {

inline constexpr int64_t kAnyCount = INT32_MAX;

int64_t parse_launcher_count(const std::string& text, int64_t low, int64_t high = kAnyCount);
double parse_launcher_number(const std::string& text, double low, double high);
std::string parse_launcher_text(const std::string& text);  // not empty

// `flag` is tgid's. Throws when another flag has given it already.
void pass_to_engine(ServeOptions& options, const std::string& flag, const std::string& value);
void pass_count(ServeOptions& options, const char* flag, const std::string& value);
void pass_dtype(ServeOptions& options, const char* flag, const std::string& value);

void set_backend(ServeOptions& options, const std::string& value);
void set_memory_fraction(ServeOptions& options, const std::string& value);
void set_quantize(ServeOptions& options, const std::string& value);
void set_kv_cache_memory(ServeOptions& options, const std::string& value);
void set_workers(ServeOptions& options, const std::string& value);
void set_max_total_tokens(ServeOptions& options, const std::string& value);
void set_host(ServeOptions& options, const std::string& value);
void set_port(ServeOptions& options, const std::string& value);
void set_origin(ServeOptions& options, const std::string& value);
void set_api_key(ServeOptions& options, const std::string& value);  // in no message
void set_otlp_endpoint(ServeOptions& options, const std::string& value);
void set_tokenizer_config(ServeOptions& options, const std::string& value);
void set_log_level(ServeOptions& options, const std::string& value);

// What tgid allows by itself (Limits in engine/runtime/intake.h); more has to be asked for.
inline constexpr int64_t kEngineBestOf = 16;
inline constexpr int64_t kEngineStopSequences = 16;
inline constexpr int64_t kEngineTopNTokens = 20;

template <auto kMember, int64_t kLow>
void set_limit(ServeOptions& options,
               const std::string& value,
               const char* flag,
               int64_t engine_limit) {
  options.*kMember = parse_launcher_count(value, kLow);
  if (options.*kMember > engine_limit) pass_to_engine(options, flag, value);
}

}  // namespace tgi
