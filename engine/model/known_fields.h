// What is known of the fields of config.json: tables with a row per field, one of all models
// (known_fields.cc) and one of each family (families/). A field that no row knows may change what
// the model computes: it is refused by name, and so is a known one with a value that asks for
// something else than is done here.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/json.h"

namespace tgi {

enum class FieldUse : uint8_t {
  kRead,        // by the reader of the family; null is not a value of it
  kReadOrNull,  // by the reader, to which null says the same as no field, or something of its own
  kHarmless,    // changes nothing that is computed here
  kHarmlessIf,  // harmless with null and some values, refused with all others
};

struct KnownField {
  std::string_view name;  // a last '*' stands for any ending
  FieldUse use = FieldUse::kHarmless;
  std::string_view reason{};  // why it is harmless, or is refused with other values
  std::string_view values{};  // kHarmlessIf: a JSON array of the harmless ones
};

constexpr KnownField read(std::string_view name) {
  return {.name = name, .use = FieldUse::kRead};
}
constexpr KnownField read_or_null(std::string_view name) {
  return {.name = name, .use = FieldUse::kReadOrNull};
}
constexpr KnownField harmless(std::string_view name, std::string_view reason) {
  return {.name = name, .use = FieldUse::kHarmless, .reason = reason};
}
constexpr KnownField harmless_if(std::string_view name,
                                 std::string_view values,
                                 std::string_view reason) {
  return {.name = name, .use = FieldUse::kHarmlessIf, .reason = reason, .values = values};
}

template <size_t... kSizes>
constexpr auto join_fields(const std::array<KnownField, kSizes>&... parts) {
  std::array<KnownField, (kSizes + ...)> out{};
  size_t end = 0;
  const auto append = [&](const auto& part) {
    std::copy(part.begin(), part.end(), out.begin() + static_cast<ptrdiff_t>(end));
    end += part.size();
  };
  (append(parts), ...);
  return out;
}

// Another name of a field, as the attribute_map of a config class says it.
struct FieldAlias {
  std::string_view alias;
  std::string_view name;
};

// The fields of decoders with a Llama block. What a family spells otherwise it lists itself.
inline constexpr auto kDecoderFields = std::to_array<KnownField>({
    read("vocab_size"),
    read("hidden_size"),
    read("intermediate_size"),
    read("num_hidden_layers"),
    read("num_attention_heads"),
    read_or_null("num_key_value_heads"),
    read_or_null("head_dim"),
    read("hidden_act"),
    read("max_position_embeddings"),
    read("rms_norm_eps"),
    read_or_null("tie_word_embeddings"),
    read("rope_theta"),
    read_or_null("rope_scaling"),
    read_or_null("rope_parameters"),
    read_or_null("partial_rotary_factor"),
    read_or_null("original_max_position_embeddings"),
    harmless_if("rope_interleaved", "[false]", "halves of a head are rotated, not pairs"),
    harmless_if("rope_traditional", "[false]", "halves of a head are rotated, not pairs"),
    harmless_if("use_mrope", "[false]", "positions are of text alone"),
});

// Gives aliased members of `config` their names. Throws kInvalidArgument where both names are there
// with different values.
void rename_aliases(std::span<const FieldAlias> aliases, Json& config);

// Fields of every model, whatever its family.
std::span<const KnownField> generic_fields();

// Looks a field up by its whole name first, then by its beginning; null: neither table knows it.
const KnownField* find_field(std::span<const KnownField> own,
                             std::span<const KnownField> shared,
                             std::string_view name);

// Throws kUnsupported naming every member that no row knows (null ones say nothing and pass), and
// the first known one with a value it can't have. `owner` is what the fields are of.
void refuse_unknown_fields(const JsonReader& object,
                           std::span<const KnownField> own,
                           std::span<const KnownField> shared,
                           std::string_view owner);

}  // namespace tgi
