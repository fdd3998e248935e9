#include "engine/weights/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/json_syntax.h"

namespace tgi {
namespace {

constexpr size_t kLengthBytes = 8;
// The reference implementation's limit.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
// "name" -> {"shape": [..]}: nothing legitimate is deeper.
constexpr int kMaxDepth = 4;

constexpr std::array<SafetensorsDType, 20> kDTypes = {{
    {"F32", 32, DType::kF32},     {"F16", 16, DType::kF16},     {"BF16", 16, DType::kBF16},
    {"BOOL", 8, std::nullopt},    {"U8", 8, std::nullopt},      {"I8", 8, std::nullopt},
    {"U16", 16, std::nullopt},    {"I16", 16, std::nullopt},    {"U32", 32, std::nullopt},
    {"I32", 32, std::nullopt},    {"U64", 64, std::nullopt},    {"I64", 64, std::nullopt},
    {"F64", 64, std::nullopt},    {"C64", 64, std::nullopt},    {"F8_E4M3", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt}, {"F8_E8M0", 8, std::nullopt}, {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt}, {"F4", 4, std::nullopt},
}};

const SafetensorsDType* find_dtype(std::string_view name) {
  for (const SafetensorsDType& dtype : kDTypes) {
    if (dtype.name == name) return &dtype;
  }
  return nullptr;
}

[[noreturn]] void fail(const std::string& message) {
  throw Error(Code::kInvalidArgument, message);
}

uint64_t read_u64_le(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    value |= static_cast<uint64_t>(std::to_integer<uint8_t>(bytes[i])) << (8 * i);
  }
  return value;
}

std::string_view header_text(std::span<const std::byte> bytes) {
  if (bytes.size() < kLengthBytes) {
    fail(
        fmt::format("truncated: {} bytes, but a safetensors file begins with an 8-byte header "
                    "length",
                    bytes.size()));
  }
  const uint64_t length = read_u64_le(bytes);
  if (length > kMaxHeaderBytes) {
    fail(fmt::format("header length {} is over the limit of {}; is this a safetensors file?",
                     length, kMaxHeaderBytes));
  }
  if (length > bytes.size() - kLengthBytes) {
    fail(fmt::format("truncated: the header has {} bytes, but only {} follow its length", length,
                     bytes.size() - kLengthBytes));
  }
  const auto* begin = reinterpret_cast<const char*>(bytes.data() + kLengthBytes);
  return {begin, static_cast<size_t>(length)};
}

// The library keeps the last of two members with one name; here two tensors of one name are a
// damaged file, so keys are watched while they are read.
Json parse_header(std::string_view text) {
  std::vector<std::set<std::string>> open_objects;
  const auto watch = [&open_objects](int depth, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
        open_objects.emplace_back();
        [[fallthrough]];
      case Json::parse_event_t::array_start:
        if (depth >= kMaxDepth) fail(fmt::format("header nests deeper than {} levels", kMaxDepth));
        break;
      case Json::parse_event_t::object_end:
        open_objects.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!open_objects.back().insert(parsed.get<std::string>()).second) {
          fail(fmt::format("header holds the name '{}' twice", parsed.get<std::string>()));
        }
        break;
      default:
        break;
    }
    return true;
  };
  try {
    Json header = Json::parse(text, watch);
    if (!header.is_object()) {
      fail(fmt::format("header is not a JSON object but {}", header.type_name()));
    }
    return header;
  } catch (const Json::exception&) {
    throw json_syntax_error(text).in("header");
  }
}

uint64_t to_unsigned(const Json& value, std::string_view what) {
  if (!value.is_number_unsigned()) {
    fail(fmt::format("{}: expected a whole number that is not negative, got {}", what,
                     value.dump(-1, ' ', true, Json::error_handler_t::replace)));
  }
  return value.get<uint64_t>();
}

const Json& member(const Json& info, const char* key) {
  const auto it = info.find(key);
  if (it == info.end()) fail(fmt::format("{} is missing", key));
  return *it;
}

std::vector<int64_t> read_shape(const Json& json) {
  if (!json.is_array()) fail(fmt::format("shape: expected an array, got {}", json.type_name()));
  std::vector<int64_t> shape;
  for (const Json& item : json) {
    const uint64_t size = to_unsigned(item, "shape");
    if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      fail(fmt::format("shape: {} is too large", size));
    }
    shape.push_back(static_cast<int64_t>(size));
  }
  return shape;
}

// Bytes of an array of this shape. Elements of less than a byte must fill whole bytes.
uint64_t shape_bytes(const std::vector<int64_t>& shape, const SafetensorsDType& dtype) {
  uint64_t bits = static_cast<uint64_t>(dtype.bits);
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(bits, static_cast<uint64_t>(size), &bits)) {
      fail(fmt::format("shape ({}) overflows 64 bits", fmt::join(shape, ", ")));
    }
  }
  if (bits % 8 != 0) {
    fail(fmt::format("shape ({}) of {} does not fill whole bytes", fmt::join(shape, ", "),
                     dtype.name));
  }
  return bits / 8;
}

SafetensorsEntry read_entry(const std::string& name,
                            const Json& info,
                            std::span<const std::byte> data) {
  if (!info.is_object()) fail(fmt::format("expected an object, got {}", info.type_name()));
  SafetensorsEntry entry{.name = name, .dtype = nullptr, .shape = {}, .bytes = {}};
  const Json& dtype = member(info, "dtype");
  if (!dtype.is_string()) fail(fmt::format("dtype: expected a string, got {}", dtype.type_name()));
  entry.dtype = find_dtype(dtype.get_ref<const std::string&>());
  if (entry.dtype == nullptr) {
    fail(fmt::format("dtype '{}' is not one of the format", dtype.get_ref<const std::string&>()));
  }
  entry.shape = read_shape(member(info, "shape"));

  const Json& offsets = member(info, "data_offsets");
  if (!offsets.is_array() || offsets.size() != 2) {
    fail("data_offsets: expected an array of two numbers");
  }
  const uint64_t begin = to_unsigned(offsets[0], "data_offsets");
  const uint64_t end = to_unsigned(offsets[1], "data_offsets");
  if (begin > end) fail(fmt::format("data_offsets: begin {} is after end {}", begin, end));
  if (end > data.size()) {
    fail(fmt::format("data_offsets: end {} is past the {} data bytes of the file", end,
                     data.size()));
  }
  const uint64_t expected = shape_bytes(entry.shape, *entry.dtype);
  if (expected != end - begin) {
    fail(fmt::format("shape ({}) of {} takes {} bytes, but data_offsets [{}, {}] hold {}",
                     fmt::join(entry.shape, ", "), entry.dtype->name, expected, begin, end,
                     end - begin));
  }
  entry.bytes = data.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  return entry;
}

void check_metadata(const Json& metadata) {
  if (!metadata.is_object()) {
    fail(fmt::format("__metadata__: expected an object, got {}", metadata.type_name()));
  }
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string()) {
      fail(fmt::format("__metadata__.{}: expected a string, got {}", key, value.type_name()));
    }
  }
}

// Holes would let a file carry bytes that nobody names, overlaps let two tensors share some: the
// reference refuses both, so that a header has one meaning.
void check_tiling(const std::vector<SafetensorsEntry>& entries, std::span<const std::byte> data) {
  std::vector<const SafetensorsEntry*> by_offset;
  for (const SafetensorsEntry& entry : entries) by_offset.push_back(&entry);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const SafetensorsEntry* left, const SafetensorsEntry* right) {
              const auto* left_begin = left->bytes.data();
              const auto* right_begin = right->bytes.data();
              return left_begin != right_begin ? left_begin < right_begin
                                               : left->bytes.size() < right->bytes.size();
            });
  const std::byte* covered = data.data();
  const std::string* previous = nullptr;
  for (const SafetensorsEntry* entry : by_offset) {
    const std::byte* begin = entry->bytes.data();
    if (begin < covered) {
      fail(fmt::format("tensor {}: begins at data byte {}, inside tensor {}, which ends at {}",
                       entry->name, begin - data.data(), *previous, covered - data.data()));
    }
    if (begin > covered) {
      fail(
          fmt::format("tensor {}: begins at data byte {}, but bytes from {} on belong to no tensor",
                      entry->name, begin - data.data(), covered - data.data()));
    }
    covered = begin + entry->bytes.size();
    previous = &entry->name;
  }
  if (covered != data.data() + data.size()) {
    fail(fmt::format("the tensors end at data byte {}, but the file has {} data bytes",
                     covered - data.data(), data.size()));
  }
}

std::vector<SafetensorsEntry> parse(std::span<const std::byte> bytes) {
  const std::string_view text = header_text(bytes);
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + text.size());
  const Json header = parse_header(text);
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, info] : header.items()) {
    if (name == "__metadata__") {
      check_metadata(info);
      continue;
    }
    try {
      entries.push_back(read_entry(name, info, data));
    } catch (const Error& error) {
      throw error.in("tensor " + name);
    }
  }
  check_tiling(entries, data);
  return entries;
}

}  // namespace

std::vector<SafetensorsEntry> parse_safetensors(std::span<const std::byte> bytes,
                                                const std::string& file) {
  try {
    return parse(bytes);
  } catch (const Error& error) {
    throw error.in(file);
  }
}

}  // namespace tgi
