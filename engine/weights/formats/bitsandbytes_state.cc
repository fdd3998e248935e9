#include "engine/weights/formats/bitsandbytes_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/known_fields.h"

namespace tgi {
namespace {

constexpr auto kFields = std::to_array<KnownField>({
    read("quant_type"),
    read("blocksize"),
    read_or_null("shape"),
    read("nested_blocksize"),
    read("nested_dtype"),
    read("nested_offset"),
    harmless_if(
        "dtype", R"(["float32", "float16", "bfloat16"])", "the numbers are of 16 or 32 bits"),
});

// Of quantize_4bit and quantize_blockwise.
constexpr std::array<int64_t, 8> kBlockSizes = {32, 64, 128, 256, 512, 1024, 2048, 4096};

int64_t read_block_size(const JsonReader& state, std::string_view key) {
  const int64_t size = state.integer(key);
  if (std::ranges::find(kBlockSizes, size) == kBlockSizes.end()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected one of {}, got {}", state.path_of(key),
                            fmt::join(kBlockSizes, ", "), size));
  }
  return size;
}

std::vector<int64_t> read_shape(const JsonReader& state) {
  constexpr std::string_view kKey = "shape";
  const auto fail = [&](const std::string& got) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected a list of sizes, got {}", state.path_of(kKey), got));
  };
  std::vector<int64_t> out;
  if (!state.has(kKey)) fail("none");
  const Json& shape = state.json().at(std::string(kKey));
  if (!shape.is_array()) fail(shape.dump());
  for (const Json& size : shape) {
    constexpr int64_t kLargest = int64_t{1} << 40;
    const bool is_size = size.is_number_integer() && size.get<double>() > 0 &&
                         size.get<double>() <= static_cast<double>(kLargest);
    if (!is_size) fail(shape.dump());
    out.push_back(size.get<int64_t>());
  }
  return out;
}

NestedScales read_nested(const JsonReader& state) {
  const std::string dtype = state.string("nested_dtype");
  if (dtype != "float32") {
    throw Error(Code::kUnsupported,
                fmt::format("{}: expected float32, got {}", state.path_of("nested_dtype"), dtype));
  }
  NestedScales out{.block_size = read_block_size(state, "nested_blocksize"),
                   .offset = static_cast<float>(state.number("nested_offset"))};
  if (!std::isfinite(out.offset)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected a number of 32 bits, got {}",
                            state.path_of("nested_offset"), state.number("nested_offset")));
  }
  return out;
}

BitsAndBytesState read_state(const JsonReader& state) {
  const std::string type = state.string("quant_type");
  if (type != "nf4" && type != "fp4") {
    throw Error(Code::kUnsupported,
                fmt::format("{}: expected nf4 or fp4, got {}", state.path_of("quant_type"), type));
  }
  refuse_unknown_fields(state, kFields, {}, "bitsandbytes' quant_state",
                        "what the stored numbers mean");
  BitsAndBytesState out{.is_nf4 = type == "nf4",
                        .block_size = read_block_size(state, "blocksize"),
                        .shape = read_shape(state)};
  if (state.has("nested_blocksize") || state.has("nested_offset") || state.has("nested_dtype")) {
    out.nested = read_nested(state);
  }
  return out;
}

}  // namespace

BitsAndBytesState parse_bitsandbytes_state(std::span<const std::byte> bytes,
                                           const std::string& tensor) {
  const std::string where = "tensor " + tensor;
  Json json;
  try {
    json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 4);
  } catch (const Error& error) {
    throw error.in(where);
  }
  return read_state(JsonReader(json, where));
}

}  // namespace tgi
