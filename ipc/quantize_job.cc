#include "ipc/quantize_job.h"

#include <array>
#include <span>

#include "ipc/field_table.h"

namespace tgi::ipc {

template <>
std::span<const Field<QuantizeParams>> fields<QuantizeParams>() {
  using Q = QuantizeParams;
  static constexpr std::array kFields = {
      field<&Q::model>("model", {.required = true}),
      field<&Q::output>("output", {.required = true}),
      field<&Q::format>("format", {.required = true}),
      field<&Q::group_size>("group_size", {.low = -1, .high = INT32_MAX}),
      field<&Q::calibration>("calibration"),
      field<&Q::num_sequences>("num_sequences", {.low = 1, .high = 1 << 20}),
      field<&Q::sequence_length>("sequence_length", {.low = 2, .high = 1 << 20}),
      field<&Q::act_order>("act_order"),
      field<&Q::damping>("damping", {.low = 0, .high = 1, .above_low = true}),
      field<&Q::force>("force"),
  };
  return kFields;
}

template <>
std::span<const Field<QuantizeReport>> fields<QuantizeReport>() {
  using Q = QuantizeReport;
  static constexpr std::array kFields = {
      field<&Q::output>("output"),
      field<&Q::format>("format"),
      field<&Q::storage>("storage"),
      field<&Q::bits>("bits"),
      field<&Q::group_size>("group_size"),
      field<&Q::calibration>("calibration"),
      field<&Q::num_sequences>("num_sequences"),
      field<&Q::num_tokens>("num_tokens"),
      field<&Q::source_perplexity>("source_perplexity"),
      field<&Q::perplexity>("perplexity"),
      field<&Q::mean_kl>("mean_kl"),
      field<&Q::top_token_agreement>("top_token_agreement"),
      field<&Q::source_bytes>("source_bytes"),
      field<&Q::bytes>("bytes"),
      field<&Q::seconds>("seconds"),
  };
  return kFields;
}

OrderedJson to_json(const QuantizeParams& params) {
  return write_value(params);
}

QuantizeParams quantize_params_from_json(const OrderedJson& params) {
  require_object(params, "params");
  refuse_unknown<QuantizeParams>(params, "");
  QuantizeParams out;
  read_fields(params, "", out);
  if (out.model.empty()) fail_field("model", "expected a folder or \"demo\", got \"\"");
  if (!out.output.starts_with('/')) {
    fail_field("output", fmt::format("expected an absolute path, got \"{}\"", out.output));
  }
  return out;
}

OrderedJson to_json(const QuantizeReport& report) {
  return write_value(report);
}

QuantizeReport quantize_report_from_json(const OrderedJson& json) {
  return from_reply<QuantizeReport>(json, "result");
}

}  // namespace tgi::ipc
