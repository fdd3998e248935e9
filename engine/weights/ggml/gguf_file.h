// One GGUF file: metadata, and a table of named arrays, over bytes that someone else keeps mapped.
// Not a model, not a set of split files.
//
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3,
// little-endian. Every count, length and offset is checked against the file before it is used.
// Immutable; safe to read from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/ggml/ggml_types.h"

namespace tgi {

enum class GgufValueType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

std::string_view gguf_value_type_name(GgufValueType type);  // "uint32"
uint64_t gguf_value_size(GgufValueType type);               // bytes of one; 0 of strings and arrays

// A value of the metadata, still in the file's bytes.
struct GgufValue {
  GgufValueType type = GgufValueType::kUint8;
  GgufValueType element_type = GgufValueType::kUint8;  // of an array
  uint64_t count = 1;                                  // of an array's elements
  std::span<const std::byte> bytes{};                  // of a string its characters
};

// Metadata by key. What is asked for and of another type throws kInvalidArgument naming the key and
// both types; integers of every width count as integers, and as numbers.
class GgufMetadata {
 public:
  bool has(std::string_view key) const { return find(key) != nullptr; }
  const GgufValue* find(std::string_view key) const;
  std::vector<std::string_view> keys() const;  // sorted

  // Throw kInvalidArgument when there is no such key.
  int64_t integer(std::string_view key) const;
  double number(std::string_view key) const;
  bool boolean(std::string_view key) const;
  std::string_view text(std::string_view key) const;  // UTF-8; else it throws too
  std::vector<int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<std::string_view> texts(std::string_view key) const;  // not necessarily UTF-8
  std::vector<bool> booleans(std::string_view key) const;

  // Nothing when there is no such key.
  std::optional<int64_t> find_integer(std::string_view key) const;
  std::optional<double> find_number(std::string_view key) const;
  std::optional<bool> find_boolean(std::string_view key) const;
  std::optional<std::string_view> find_text(std::string_view key) const;

  void add(std::string_view key, const GgufValue& value);  // REQUIRES: there is none of that key

 private:
  std::map<std::string_view, GgufValue> values_;
};

struct GgufTensor {
  std::string_view name;
  const GgmlType* type = nullptr;
  // Row-major, outermost first: the reverse of the file's. At least one; of a single number {1}.
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;

  int64_t num_elements() const;
};

struct GgufFile {
  uint32_t version = 0;
  GgufMetadata metadata{};
  std::vector<GgufTensor> tensors{};  // in the order of the file
};

// Throws kInvalidArgument whose message begins with `label` and says what does not fit and where:
// no GGUF file, cut short, an unknown type, two keys or tensors of one name, tensors that overlap;
// kUnsupported for version 1 and for files written big-endian.
GgufFile parse_gguf(std::span<const std::byte> bytes, const std::string& label);

bool is_gguf(std::span<const std::byte> bytes);  // by its first four bytes
bool is_adapter(const GgufMetadata& metadata);   // and no model, as the file says

}  // namespace tgi
