#include "cmd/launcher_setters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "base/ascii.h"
#include "base/error.h"
#include "base/known_names.h"
#include "base/log.h"
#include "cmd/launcher_flags.h"

namespace tgi {
namespace {

[[noreturn]] void fail(const std::string& expected, const std::string& text) {
  throw Error(Code::kInvalidArgument, fmt::format("expected {}, got \"{}\"", expected, text));
}

template <typename T>
bool parse_whole(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end;
}

bool is_among(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Renamed {
  std::string_view given;
  std::string_view engine;
};

// Their names of our types; our own are taken as well.
constexpr std::array kDtypes = {Renamed{"float16", "f16"}, Renamed{"bfloat16", "bf16"},
                                Renamed{"float32", "f32"}, Renamed{"fp8_e4m3fn", "f8e4m3"}};

struct Quantization {
  std::string_view name;
  std::string_view instead;
};

constexpr std::string_view kOtherCheckpoint =
    "checkpoints in this format can't be read; take one in a format of "
    "docs/quantised_checkpoints.md, or the unquantised one with --quantize int8 or int4";
constexpr std::string_view kRoundToInt4 =
    "its kernels are for CUDA; --quantize int4 rounds the weights to 4 bits while loading";
constexpr std::string_view kNoFp8Cache =
    "8-bit floats of the KV cache are --kv-cache-dtype fp8_e4m3fn; for weights use "
    "--quantize int8";

// Those of TGI, and after the empty line those that only LoRAX has.
constexpr auto kQuantizations = std::to_array<Quantization>({
    {"marlin", kOtherCheckpoint},

    {"fp8-kv", kNoFp8Cache},
    {"hqq-4bit", kRoundToInt4},
    {"hqq-3bit", kRoundToInt4},
    {"hqq-2bit", kRoundToInt4},
});

}  // namespace

int64_t parse_launcher_count(const std::string& text, int64_t low, int64_t high) {
  int64_t value = 0;
  if (parse_whole(text, value) && value >= low && value <= high) return value;
  if (high == kAnyCount) fail(fmt::format("a whole number of at least {}", low), text);
  fail(fmt::format("a whole number from {} to {}", low, high), text);
}

double parse_launcher_number(const std::string& text, double low, double high) {
  double value = 0;
  if (parse_whole(text, value) && value >= low && value <= high) return value;
  fail(fmt::format("a number of at least {}", low), text);
}

std::string parse_launcher_text(const std::string& text) {
  if (text.empty()) fail("a text", text);
  return text;
}

bool parse_launcher_switch(const std::string& text) {
  const std::string value = ascii_lower(text);
  for (const char* yes : {"true", "1", "yes", "on", "y", "t"}) {
    if (value == yes) return true;
  }
  for (const char* no : {"false", "0", "no", "off", "n", "f"}) {
    if (value == no) return false;
  }
  fail("true or false", text);
}

void pass_to_engine(ServeOptions& options, const std::string& flag, const std::string& value) {
  for (const EngineSetting& setting : options.engine) {
    if (setting.flag != flag) continue;
    throw Error(Code::kInvalidArgument,
                fmt::format("the daemon's {} is already given by another flag or variable, as {}; "
                            "give one of them",
                            flag, setting.value));
  }
  options.engine.push_back({flag, value});
}

void pass_setting(ServeOptions& options, std::string_view flag, const std::string& value) {
  const ipc::ModelSetting* row = ipc::find_model_setting(flag);
  TGI_CHECK(row != nullptr);
  ipc::ModelSettings scratch;
  row->set(scratch, value);
  pass_to_engine(options, std::string(flag), row->get(scratch));
}

void pass_dtype(ServeOptions& options, const char* flag, const std::string& value) {
  std::string ours = value;
  for (const Renamed& row : kDtypes) {
    if (row.given == value) ours = row.engine;
  }
  if (is_among(ipc::find_model_setting(flag)->choices, ours)) {
    return pass_to_engine(options, flag, ours);
  }
  if (value.starts_with("fp8")) {
    throw Error(Code::kUnsupported,
                fmt::format("{} is not available yet; bfloat16 halves what float32 takes", value));
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("expected float16, bfloat16, float32 or auto, got \"{}\"", value));
}

void set_quantize(ServeOptions& options, const std::string& value) {
  if (is_among(ipc::kQuantizeChoices, value)) return pass_to_engine(options, "quantize", value);
  for (const Quantization& row : kQuantizations) {
    if (row.name != value) continue;
    throw Error(Code::kUnsupported, fmt::format("{}: {}", value, row.instead));
  }
  throw Error(Code::kInvalidArgument, fmt::format("expected {} or none, got \"{}\"",
                                                  fmt::join(kRoundingNames, ", "), value));
}

void set_backend(ServeOptions& options, const std::string& value) {
  for (const char* attention : {"fa2", "flashinfer", "paged"}) {
    if (value != attention) continue;
    throw Error(Code::kUnsupported,
                fmt::format("{} is a kind of attention, and here there is one for all models and "
                            "prompts; leave it out",
                            value));
  }
  pass_setting(options, "backend", value);
}

void set_host(ServeOptions& options, const std::string& value) {
  std::string host = parse_launcher_text(value);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.find_first_of("[]/ ") != std::string::npos || host.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("expected an address or the name of a host, got \"{}\"", value));
  }
  options.host = host;
}

void set_port(ServeOptions& options, const std::string& value) {
  options.port = static_cast<uint16_t>(parse_launcher_count(value, 0, 65535));
}

void set_origin(ServeOptions& options, const std::string& value) {
  const size_t scheme = value.find("://");
  const bool is_origin = scheme != std::string::npos && scheme > 0 && value.size() > scheme + 3 &&
                         value.find_first_of("/ ?#*", scheme + 3) == std::string::npos;
  if (!is_origin && value != "*") {
    throw Error(Code::kInvalidArgument,
                fmt::format("expected an origin such as https://example.org, without a path, or *; "
                            "got \"{}\"",
                            value));
  }
  options.cors_allow_origin.push_back(value);
}

void set_api_key(ServeOptions& options, const std::string& value) {
  const bool printable =
      std::all_of(value.begin(), value.end(), [](char c) { return c >= '!' && c <= '~'; });
  if (value.empty() || !printable) {
    throw Error(Code::kInvalidArgument,
                "expected printable ASCII characters without spaces, as no HTTP client can send "
                "others; does it end in a line break?");
  }
  options.api_key = value;
}

void set_otlp_endpoint(ServeOptions& options, const std::string& value) {
  if (!value.starts_with("http://") && !value.starts_with("https://")) {
    throw Error(Code::kInvalidArgument,
                fmt::format("expected a URL such as http://127.0.0.1:4318, got \"{}\"", value));
  }
  options.otlp_endpoint = value;
}

void set_tokenizer_config(ServeOptions& options, const std::string& value) {
  if (!std::filesystem::is_regular_file(value)) {
    throw Error(Code::kInvalidArgument, fmt::format("expected a file, got \"{}\"", value));
  }
  options.tokenizer_config_path = std::filesystem::absolute(value).string();
}

void set_workers(ServeOptions& options, const std::string& value) {
  options.validation_workers = parse_launcher_count(value, 1, 256);
  pass_to_engine(options, "intake-threads", fmt::format("{}", options.validation_workers));
}

void set_max_total_tokens(ServeOptions& options, const std::string& value) {
  options.max_total_tokens = parse_launcher_count(value, 2);
  pass_to_engine(options, "max-total-tokens", fmt::format("{}", *options.max_total_tokens));
}

void set_lora_adapter(ServeOptions& options, const std::string& value) {
  options.lora_adapters.push_back(parse_launcher_text(value));
}

void set_preloaded_adapter(ServeOptions& options, const std::string& value) {
  options.preloaded_adapters.push_back(parse_launcher_text(value));
}

void set_static_adapter(ServeOptions& options, const std::string& value) {
  options.static_adapter = parse_launcher_text(value);
}

void set_adapter_source(ServeOptions& options, const std::string& value) {
  if (value != "hub" && value != "local" && value != "s3") {
    const bool is_predibase = value == "pbase";
    throw Error(is_predibase ? Code::kUnsupported : Code::kInvalidArgument,
                is_predibase ? std::string("models and adapters of Predibase are not supported; "
                                           "expected hub, local or s3")
                             : fmt::format("expected hub, local or s3, got {}", value));
  }
  options.adapter_source = value;
}

void add_route_alias(ServeOptions& options, const std::string& value, std::string_view route) {
  if (!value.starts_with('/') || value.find_first_of(" ?#") != std::string::npos) {
    throw Error(Code::kInvalidArgument,
                fmt::format("expected a path that begins with /, got \"{}\"", value));
  }
  options.route_aliases.push_back({.path = value, .route = std::string(route)});
}

void set_log_level(ServeOptions& options, const std::string& value) {
  const std::string level = ascii_lower(value);
  if (!is_among(kLogLevelNames, level)) {
    fail(fmt::format("one of {}", fmt::join(kLogLevelNames, ", ")), value);
  }
  options.log_level = level;
}

}  // namespace tgi
