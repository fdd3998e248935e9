#include "ipc/vectors.h"

#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "base/base64.h"
#include "base/error.h"
#include "ipc/field_table.h"

namespace tgi::ipc {

template <>
std::span<const Field<TextInput>> fields<TextInput>() {
  using T = TextInput;
  static constexpr std::array kFields = {
      field<&T::text>("text"),
      field<&T::pair>("pair"),
      field<&T::ids>("ids", {.low = 0}),
  };
  return kFields;
}

template <>
std::span<const Field<VectorParams>> fields<VectorParams>() {
  using V = VectorParams;
  static constexpr std::array kFields = {
      field<&V::model>("model"),
      field<&V::keep_alive_seconds>("keep_alive_seconds"),
      field<&V::inputs>("inputs", {.required = true}),
      field<&V::truncate>("truncate"),
      field<&V::truncation_side>("truncation_side"),
      field<&V::adapter>("adapter"),
      field<&V::adapter_path>("adapter_path"),
      field<&V::prompt>("prompt"),
      field<&V::prompt_name>("prompt_name"),
      field<&V::normalize>("normalize"),
      field<&V::dimensions>("dimensions", {.low = 1, .high = 1 << 20}),
      field<&V::each_token>("each_token"),
      field<&V::raw_scores>("raw_scores"),
  };
  return kFields;
}

template <>
std::span<const Field<EmbedResult>> fields<EmbedResult>() {
  using E = EmbedResult;
  static constexpr std::array kFields = {
      field<&E::vectors>("vectors", {.required = true}),
      field<&E::num_tokens>("num_tokens", {.required = true}),
      field<&E::dimensions>("dimensions", {.required = true}),
  };
  return kFields;
}

template <>
std::span<const Field<EntityInfo>> fields<EntityInfo>() {
  using E = EntityInfo;
  static constexpr std::array kFields = {
      field<&E::group>("group", {.required = true}), field<&E::score>("score", {.required = true}),
      field<&E::word>("word", {.required = true}),   field<&E::start>("start", {.required = true}),
      field<&E::end>("end", {.required = true}),
  };
  return kFields;
}

template <>
std::span<const Field<TextScores>> fields<TextScores>() {
  using T = TextScores;
  static constexpr std::array kFields = {
      field<&T::scores>("scores", kLeaveOutEmpty),
      field<&T::entities>("entities", kLeaveOutEmpty),
  };
  return kFields;
}

template <>
std::span<const Field<ClassifyResult>> fields<ClassifyResult>() {
  using C = ClassifyResult;
  static constexpr std::array kFields = {
      field<&C::labels>("labels", {.required = true}),
      field<&C::texts>("texts", {.required = true}),
      field<&C::num_tokens>("num_tokens", {.required = true}),
  };
  return kFields;
}

namespace {

void check_input(const TextInput& input, const std::string& path) {
  if (input.text.has_value() == input.ids.has_value()) {
    fail_field(path, "expected exactly one of text, ids");
  }
  if (input.pair && !input.text) fail_field(path + ".pair", "only goes with text");
  if (input.ids && input.ids->empty()) {
    fail_field(path + ".ids", "expected at least one id, got none");
  }
}

}  // namespace

OrderedJson to_json(const VectorParams& params) {
  return write_value(params);
}

VectorParams vector_params_from_json(const OrderedJson& params) {
  require_object(params, "params");
  refuse_unknown<VectorParams>(params, "");
  VectorParams out;
  read_fields(params, "", out);
  if (out.inputs.empty()) fail_field("inputs", "expected at least one text, got none");
  if (out.inputs.size() > kMaxTexts) {
    fail_field("inputs",
               fmt::format("expected at most {} texts, got {}", kMaxTexts, out.inputs.size()));
  }
  for (size_t i = 0; i < out.inputs.size(); ++i) {
    const OrderedJson& input = params.at("inputs")[i];
    const std::string path = fmt::format("inputs.{}", i);
    refuse_unknown<TextInput>(input, path);
    check_input(out.inputs[i], path);
  }
  if (out.truncation_side && *out.truncation_side != "left" && *out.truncation_side != "right") {
    fail_field("truncation_side",
               fmt::format("expected left or right, got \"{}\"", *out.truncation_side));
  }
  if (out.prompt && out.prompt_name) {
    fail_field("prompt_name", "expected at most one of prompt, prompt_name");
  }
  if (out.each_token && (out.normalize || out.dimensions)) {
    fail_field("each_token", "goes with neither normalize nor dimensions");
  }
  if (out.adapter_path && !out.adapter) fail_field("adapter_path", "only goes with adapter");
  return out;
}

OrderedJson to_json(const EmbedResult& result) {
  return write_value(result);
}

EmbedResult embed_result_from_json(const OrderedJson& json) {
  return from_reply<EmbedResult>(json, "result");
}

OrderedJson to_json(const ClassifyResult& result) {
  return write_value(result);
}

ClassifyResult classify_result_from_json(const OrderedJson& json) {
  return from_reply<ClassifyResult>(json, "result");
}

std::string base64_of(const std::vector<float>& values) {
  static_assert(std::endian::native == std::endian::little);
  return encode_base64(std::as_bytes(std::span(values)));
}

std::vector<float> floats_of_base64(std::string_view text) {
  std::string bytes;
  try {
    bytes = decode_base64(text);
  } catch (const Error& error) {
    throw error.in("vector");
  }
  if (bytes.size() % sizeof(float) != 0) {
    fail_field("vector", fmt::format("expected base64 of numbers of 4 bytes, got {} characters",
                                     text.size()));
  }
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

}  // namespace tgi::ipc
