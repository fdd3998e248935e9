// The one exception type of the project and the table that ties its codes to the wire, to HTTP and
// to exit codes. Header-only on purpose: a plugin loaded with dlopen throws and catches it by type
// without linking anything.
//
// Thrown at load, configuration, intake and I/O. Ordinary refusals ("no block free now") are
// values, not errors. Messages are in the user's terms: what, where, expected, got, what to do.
// Lower case, no trailing full stop.
#pragma once

#include <array>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tgi {

enum class Code {
  kInvalidArgument,  // the request or a setting is wrong; repeating it can't help
  kNotFound,         // a file, a model or a method that is not there
  kUnsupported,      // understood, but this build or device can't do it
  kTemplate,         // the chat template refuses the messages, or the model has none
  kOutOfMemory,      // host or device memory, or disk
  kOverloaded,       // queue full, no model ready, shutting down: try again later
  kCancelled,        // by the client, or because its connection closed
  kUnavailable,      // the daemon, or a server with models, can't be reached or went away
  kDeviceLost,       // the accelerator failed; the daemon ends after answering
  kNotFinite,        // the model's logits hold a NaN or an infinity: no token can be taken
  kInternal,         // a bug of ours
  kForbidden,        // this user may not ask for it, another one may
  kAdapter,          // the adapter that a request wants is not there or can't be used
};

struct CodeRow {
  Code code;
  std::string_view name;  // on the wire
  int http_status;
  int exit_status;  // of a tgi command; 2 is left to usage errors found by the flag parser
};

inline constexpr std::array<CodeRow, 13> kCodeTable = {{
    {Code::kInvalidArgument, "invalid_argument", 422, 3},
    {Code::kNotFound, "not_found", 404, 4},
    {Code::kUnsupported, "unsupported", 422, 5},
    {Code::kTemplate, "template_error", 422, 3},
    {Code::kOutOfMemory, "out_of_memory", 507, 6},
    {Code::kOverloaded, "overloaded", 429, 7},
    {Code::kCancelled, "cancelled", 499, 130},
    {Code::kUnavailable, "unavailable", 502, 8},
    {Code::kDeviceLost, "device_lost", 500, 9},
    {Code::kForbidden, "forbidden", 403, 10},
    {Code::kNotFinite, "not_finite", 500, 11},
    {Code::kAdapter, "adapter_failed", 424, 12},
    {Code::kInternal, "internal", 500, 1},
}};

constexpr const CodeRow& code_row(Code code) {
  for (const CodeRow& row : kCodeTable) {
    if (row.code == code) return row;
  }
  return kCodeTable.back();
}

// A name this build does not know (a newer peer's) is treated as internal.
constexpr Code code_from_name(std::string_view name) {
  for (const CodeRow& row : kCodeTable) {
    if (row.name == name) return row.code;
  }
  return Code::kInternal;
}

// A message with its control characters as \x00, but for tabs and the ends of lines: what() ends at
// a zero byte, and terminals obey the others. What a client sent may hold any.
inline std::string shown_controls(const std::string& message) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(message.size());
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= ' ' && byte != 0x7F) || c == '\n' || c == '\t') {
      out += c;
    } else {
      out += "\\x";
      out += kDigits[byte / 16];
      out += kDigits[byte % 16];
    }
  }
  return out;
}

class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message)
      : std::runtime_error(shown_controls(message)), code_(code) {}

  Code code() const { return code_; }

  // The same error with "where" put before the message: "model.safetensors: header length ...".
  Error in(std::string_view where) const { return {code_, std::string(where) + ": " + what()}; }

 private:
  Code code_;
};

// Of anything that was thrown: what is none of ours is a bug of ours.
inline Error error_of(const std::exception& thrown) {
  const auto* const error = dynamic_cast<const Error*>(&thrown);
  return error != nullptr ? *error : Error(Code::kInternal, thrown.what());
}

// For states that only a bug of ours can produce. Stays on in release builds.
#define TGI_CHECK(condition)                                                                  \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      throw ::tgi::Error(::tgi::Code::kInternal, std::string("check failed: ") + #condition + \
                                                     " at " + __FILE__ + ":" +                \
                                                     std::to_string(__LINE__));               \
    }                                                                                         \
  } while (false)

}  // namespace tgi
