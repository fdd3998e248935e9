// What a token of the stand-in daemon says: whose it is, which one it is, and when it was written.
// As text "~17.42.1234567890123~", so that it passes through any JSON unchanged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tgi {

struct Stamp {
  size_t stream = 0;
  size_t token = 0;        // 0 is the first of its stream
  int64_t written_ns = 0;  // CLOCK_MONOTONIC, which all processes of a machine share
};

int64_t monotonic_ns();

void append_stamp(const Stamp& stamp, std::string& out);

// The first stamp in `text`, or nothing.
std::optional<Stamp> find_stamp(std::string_view text);

}  // namespace tgi
