#include "ipc/detokenize.h"

#include <array>
#include <span>

#include "ipc/field_table.h"

namespace tgi::ipc {

template <>
std::span<const Field<DetokenizeParams>> fields<DetokenizeParams>() {
  static constexpr std::array kFields = {
      field<&DetokenizeParams::model>("model"),
      field<&DetokenizeParams::ids>("ids", {.required = true}),
  };
  return kFields;
}

template <>
std::span<const Field<DetokenizeResult>> fields<DetokenizeResult>() {
  static constexpr std::array kFields = {
      field<&DetokenizeResult::text>("text", {.required = true}),
  };
  return kFields;
}

OrderedJson to_json(const DetokenizeParams& params) {
  return write_value(params);
}

DetokenizeParams detokenize_params_from_json(const OrderedJson& params) {
  require_object(params, "params");
  refuse_unknown<DetokenizeParams>(params, "");
  DetokenizeParams out;
  read_fields(params, "", out);
  return out;
}

OrderedJson to_json(const DetokenizeResult& result) {
  return write_value(result);
}

DetokenizeResult detokenize_result_from_json(const OrderedJson& json) {
  return from_reply<DetokenizeResult>(json, "result");
}

}  // namespace tgi::ipc
