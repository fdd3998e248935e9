// The metadata of a GGUF file that is to be written: fields in the order they were put in. Belongs
// to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights/ggml/gguf_file.h"

namespace tgi {

class GgufFields {
 public:
  struct Field {
    std::string key;
    GgufValueType type = GgufValueType::kUint8;
    GgufValueType element_type = GgufValueType::kUint8;  // of an array
    uint64_t count = 1;                                  // of an array's elements
    std::string bytes{};                                 // as GgufValue has them
  };

  // Each replaces what was there. Integers are uint32 where they fit, else int64; lists of them
  // int32, which they have to fit; numbers float32.
  void put_integer(std::string_view key, int64_t value);
  void put_number(std::string_view key, double value);
  void put_boolean(std::string_view key, bool value);
  void put_text(std::string_view key, std::string_view value);
  void put_integers(std::string_view key, std::span<const int32_t> values);
  void put_numbers(std::string_view key, std::span<const float> values);
  void put_booleans(std::string_view key, const std::vector<bool>& values);
  void put_texts(std::string_view key, const std::vector<std::string>& values);
  // As another file has it.
  void put(std::string_view key, const GgufValue& value);

  bool has(std::string_view key) const;
  void erase(std::string_view key);
  const std::vector<Field>& fields() const { return fields_; }

  // What a reader of the file will have. References the fields.
  GgufMetadata metadata() const;

 private:
  void put(Field field);

  std::vector<Field> fields_;
};

}  // namespace tgi
