#include "ipc/model_facts.h"

#include <array>
#include <span>

#include "ipc/field_table.h"

namespace tgi::ipc {

template <>
std::span<const Field<InspectParams>> fields<InspectParams>() {
  static constexpr std::array kFields = {
      field<&InspectParams::model>("model", {.required = true}),
  };
  return kFields;
}

template <>
std::span<const Field<StoredWeights>> fields<StoredWeights>() {
  static constexpr std::array kFields = {
      field<&StoredWeights::dtype>("dtype"),
      field<&StoredWeights::num_tensors>("num_tensors"),
      field<&StoredWeights::bytes>("bytes"),
  };
  return kFields;
}

template <>
std::span<const Field<MetadataRow>> fields<MetadataRow>() {
  static constexpr std::array kFields = {
      field<&MetadataRow::name>("name"),
      field<&MetadataRow::value>("value"),
  };
  return kFields;
}

template <>
std::span<const Field<ContextPlan>> fields<ContextPlan>() {
  static constexpr std::array kFields = {
      field<&ContextPlan::tokens>("tokens"),
      field<&ContextPlan::kv_cache>("kv_cache"),
      field<&ContextPlan::total>("total"),
  };
  return kFields;
}

template <>
std::span<const Field<DTypePlan>> fields<DTypePlan>() {
  static constexpr std::array kFields = {
      field<&DTypePlan::dtype>("dtype"),
      field<&DTypePlan::error>("error", kLeaveOutEmpty),
      field<&DTypePlan::weights>("weights"),
      field<&DTypePlan::workspace>("workspace"),
      field<&DTypePlan::kv_bytes_per_token>("kv_bytes_per_token"),
      field<&DTypePlan::contexts>("contexts"),
  };
  return kFields;
}

template <>
std::span<const Field<ModelFacts>> fields<ModelFacts>() {
  using M = ModelFacts;
  static constexpr std::array kFields = {
      field<&M::architecture>("architecture"),
      field<&M::num_params>("num_params"),
      field<&M::num_layers>("num_layers"),
      field<&M::hidden_size>("hidden_size"),
      field<&M::intermediate_size>("intermediate_size"),
      field<&M::num_heads>("num_heads"),
      field<&M::num_kv_heads>("num_kv_heads"),
      field<&M::head_dim>("head_dim"),
      field<&M::kv_heads>("kv_heads", kLeaveOutEmpty),
      field<&M::num_shared_kv_layers>("num_shared_kv_layers"),
      field<&M::vocab_size>("vocab_size"),
      field<&M::max_positions>("max_positions"),
      field<&M::chosen_tokens>("chosen_tokens"),
      field<&M::sliding_window>("sliding_window"),
      field<&M::num_windowed_layers>("num_windowed_layers"),
      field<&M::num_experts>("num_experts"),
      field<&M::experts_per_token>("experts_per_token"),
      field<&M::num_state_layers>("num_state_layers"),
      field<&M::state_bytes>("state_bytes"),
      field<&M::tied_embeddings>("tied_embeddings"),
      field<&M::checkpoint_dtype>("checkpoint_dtype"),
      field<&M::weight_format>("weight_format"),
      field<&M::stored>("stored"),
      field<&M::weights_error>("weights_error", kLeaveOutEmpty),
      field<&M::chat_templates>("chat_templates"),
      field<&M::knows_tools>("knows_tools"),
      field<&M::chat_template_error>("chat_template_error", kLeaveOutEmpty),
      field<&M::metadata>("metadata", kLeaveOutEmpty),
      field<&M::licence>("licence", kLeaveOutEmpty),
      field<&M::backend>("backend"),
      field<&M::memory>("memory"),
      field<&M::plans>("plans"),
  };
  return kFields;
}

template <>
std::span<const Field<AdapterFolder>> fields<AdapterFolder>() {
  using A = AdapterFolder;
  static constexpr std::array kFields = {
      field<&A::base_model>("base_model", kLeaveOutEmpty),
      field<&A::revision>("revision", kLeaveOutEmpty),
      field<&A::rank>("rank"),
      field<&A::alpha>("alpha"),
      field<&A::is_rank_stabilised>("rank_stabilised"),
      field<&A::is_dora>("dora"),
      field<&A::has_b_biases>("b_biases"),
      field<&A::bias>("bias"),
      field<&A::targets>("targets"),
      field<&A::modules>("modules"),
      field<&A::max_rank>("max_rank"),
      field<&A::num_linears>("num_linears"),
      field<&A::bytes>("bytes"),
      field<&A::weights_error>("weights_error", kLeaveOutEmpty),
  };
  return kFields;
}

OrderedJson to_json(const InspectParams& params) {
  return write_value(params);
}

InspectParams inspect_params_from_json(const OrderedJson& params) {
  require_object(params, "params");
  refuse_unknown<InspectParams>(params, "");
  InspectParams out;
  read_fields(params, "", out);
  if (out.model.empty()) fail_field("model", "expected a folder or \"demo\", got \"\"");
  return out;
}

OrderedJson to_json(const ModelFacts& facts) {
  return write_value(facts);
}

OrderedJson to_json(const AdapterFolder& adapter) {
  return OrderedJson{{"adapter", write_value(adapter)}};
}

AdapterFolder adapter_folder_from_json(const OrderedJson& json) {
  require_object(json, "result");
  if (!json.contains("adapter")) fail_field("result", "expected an adapter");
  return from_reply<AdapterFolder>(json.at("adapter"), "result.adapter");
}

ModelFacts model_facts_from_json(const OrderedJson& json) {
  return from_reply<ModelFacts>(json, "result");
}

}  // namespace tgi::ipc
