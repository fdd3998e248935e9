// The codec of what the daemon answers. Fields a client does not know are passed over: a newer
// daemon of the same protocol may send more.
#include <fmt/format.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "ipc/field_table.h"

namespace tgi::ipc {
namespace {

struct FinishReasonRow {
  FinishReason reason;
  std::string_view name;
};

constexpr std::array<FinishReasonRow, 3> kFinishReasons = {{
    {FinishReason::kLength, "length"},
    {FinishReason::kEosToken, "eos_token"},
    {FinishReason::kStopSequence, "stop_sequence"},
}};

constexpr Rules kRequired = {.required = true};

}  // namespace

std::string_view finish_reason_name(FinishReason reason) {
  for (const FinishReasonRow& row : kFinishReasons) {
    if (row.reason == reason) return row.name;
  }
  throw Error(Code::kInternal, "a finish reason without a name");
}

std::string write_finish_reason(FinishReason reason) {
  return std::string(finish_reason_name(reason));
}

void read_value(const OrderedJson& json,
                const std::string& path,
                const Rules& rules,
                FinishReason& out) {
  std::string name;
  read_value(json, path, rules, name);
  for (const FinishReasonRow& row : kFinishReasons) {
    if (row.name == name) {
      out = row.reason;
      return;
    }
  }
  fail_field(path, fmt::format("unknown finish reason {}", name));
}

template <>
std::span<const Field<TokenInfo>> fields<TokenInfo>() {
  static constexpr std::array kFields = {
      field<&TokenInfo::id>("id", kRequired),
      field<&TokenInfo::text>("text", kRequired),
      field<&TokenInfo::logprob>("logprob"),
      field<&TokenInfo::special>("special"),
      field<&TokenInfo::skipped>("skipped", kLeaveOutEmpty),
      field<&TokenInfo::bytes>("bytes", kLeaveOutEmpty),
  };
  return kFields;
}

template <>
std::span<const Field<AcceptedEvent>> fields<AcceptedEvent>() {
  using A = AcceptedEvent;
  static constexpr std::array kFields = {
      field<&A::num_prompt_tokens>("num_prompt_tokens"),
      field<&A::num_prompt_characters>("num_prompt_characters"),
      field<&A::max_new_tokens>("max_new_tokens"),
  };
  return kFields;
}

template <>
std::span<const Field<ProgressEvent>> fields<ProgressEvent>() {
  using P = ProgressEvent;
  static constexpr std::array kFields = {
      field<&P::phase>("phase"),
      field<&P::done>("done"),
      field<&P::total>("total"),
      field<&P::seconds>("seconds"),
      field<&P::seconds_left>("seconds_left"),
  };
  return kFields;
}

template <>
std::span<const Field<TokenSpan>> fields<TokenSpan>() {
  static constexpr std::array kFields = {
      field<&TokenSpan::start>("start"),
      field<&TokenSpan::stop>("stop"),
  };
  return kFields;
}

template <>
std::span<const Field<ToolCall>> fields<ToolCall>() {
  static constexpr std::array kFields = {
      field<&ToolCall::index>("index"),
      field<&ToolCall::id>("id", kLeaveOutEmpty),
      field<&ToolCall::name>("name", kLeaveOutEmpty),
      field<&ToolCall::arguments>("arguments"),
  };
  return kFields;
}

template <>
std::span<const Field<TokenEvent>> fields<TokenEvent>() {
  static constexpr std::array kFields = {
      field<&TokenEvent::index>("index"),
      field<&TokenEvent::token>("token", kRequired),
      field<&TokenEvent::text>("text", kRequired),
      field<&TokenEvent::reasoning>("reasoning", kLeaveOutEmpty),
      field<&TokenEvent::tool_calls>("tool_calls", kLeaveOutEmpty),
      field<&TokenEvent::top_tokens>("top_tokens", kLeaveOutEmpty),
      field<&TokenEvent::finish_reason>("finish_reason"),
  };
  return kFields;
}

template <>
std::span<const Field<AdapterStatus>> fields<AdapterStatus>() {
  using A = AdapterStatus;
  static constexpr std::array kFields = {
      field<&A::name>("name", kRequired),
      field<&A::path>("path"),
      field<&A::base_model>("base_model"),
      field<&A::max_rank>("max_rank"),
      field<&A::num_linears>("num_linears"),
      field<&A::targets>("targets"),
      field<&A::file_bytes>("file_bytes"),
      field<&A::device_bytes>("device_bytes"),
      field<&A::state>("state"),
      field<&A::pinned>("pinned"),
      field<&A::pin_error>("pin_error", kLeaveOutEmpty),
      field<&A::num_requests>("num_requests"),
      field<&A::num_running>("num_running"),
      field<&A::num_waiting>("num_waiting"),
      field<&A::idle_seconds>("idle_seconds"),
  };
  return kFields;
}

template <>
std::span<const Field<AdapterList>> fields<AdapterList>() {
  static constexpr std::array kFields = {
      field<&AdapterList::adapters>("adapters"),
      field<&AdapterList::max_bytes>("max_bytes"),
      field<&AdapterList::used_bytes>("used_bytes"),
      field<&AdapterList::max_active>("max_active"),
  };
  return kFields;
}

template <>
std::span<const Field<Timings>> fields<Timings>() {
  static constexpr std::array kFields = {
      field<&Timings::queue_ms>("queue_ms"),
      field<&Timings::time_to_first_token_ms>("time_to_first_token_ms"),
      field<&Timings::decode_ms>("decode_ms"),
      field<&Timings::total_ms>("total_ms"),
  };
  return kFields;
}

template <>
std::span<const Field<SequenceResult>> fields<SequenceResult>() {
  using S = SequenceResult;
  static constexpr std::array kFields = {
      field<&S::index>("index"),
      field<&S::draw_seed>("draw_seed"),
      field<&S::text>("text", kRequired),
      field<&S::reasoning>("reasoning", kLeaveOutEmpty),
      field<&S::tool_calls>("tool_calls", kLeaveOutEmpty),
      field<&S::finish_reason>("finish_reason", kRequired),
      field<&S::stop_sequence>("stop_sequence", kLeaveOutEmpty),
      field<&S::num_generated_tokens>("num_generated_tokens"),
      field<&S::num_reasoning_tokens>("num_reasoning_tokens"),
      field<&S::num_skipped_tokens>("num_skipped_tokens"),
      field<&S::mean_logprob>("mean_logprob"),
      field<&S::tokens>("tokens", kLeaveOutEmpty),
      field<&S::top_tokens>("top_tokens", kLeaveOutEmpty),
  };
  return kFields;
}

template <>
std::span<const Field<DoneEvent>> fields<DoneEvent>() {
  using D = DoneEvent;
  static constexpr std::array kFields = {
      field<&D::others>("others", kLeaveOutEmpty),
      field<&D::prompt_tokens>("prompt_tokens", kLeaveOutEmpty),
      field<&D::prompt_top_tokens>("prompt_top_tokens", kLeaveOutEmpty),
      field<&D::seed>("seed"),
      field<&D::num_prompt_tokens>("num_prompt_tokens"),
      field<&D::num_cached_tokens>("num_cached_tokens"),
      field<&D::num_truncated_tokens>("num_truncated_tokens"),
      field<&D::timings>("timings"),
  };
  return kFields;
}

template <>
std::span<const Field<MemoryPlan>> fields<MemoryPlan>() {
  static constexpr std::array kFields = {
      field<&MemoryPlan::weights>("weights"),     field<&MemoryPlan::kv_cache>("kv_cache"),
      field<&MemoryPlan::workspace>("workspace"), field<&MemoryPlan::adapters>("adapters"),
      field<&MemoryPlan::states>("states"),       field<&MemoryPlan::drafter>("drafter"),
      field<&MemoryPlan::available>("available"),
  };
  return kFields;
}

template <>
std::span<const Field<KvHeads>> fields<KvHeads>() {
  static constexpr std::array kFields = {
      field<&KvHeads::num_layers>("num_layers"),
      field<&KvHeads::num_kv_heads>("num_kv_heads"),
      field<&KvHeads::head_dim>("head_dim"),
      field<&KvHeads::value_dim>("value_dim"),
  };
  return kFields;
}

template <>
std::span<const Field<KvGroupCounts>> fields<KvGroupCounts>() {
  static constexpr std::array kFields = {
      field<&KvGroupCounts::num_full>("num_full"),
      field<&KvGroupCounts::num_windowed>("num_windowed"),
      field<&KvGroupCounts::window>("window"),
      field<&KvGroupCounts::num_layers>("num_layers"),
      field<&KvGroupCounts::heads>("heads", kLeaveOutEmpty),
      field<&KvGroupCounts::num_shared>("num_shared"),
  };
  return kFields;
}

template <>
std::span<const Field<LeftOutKernels>> fields<LeftOutKernels>() {
  static constexpr std::array kFields = {
      field<&LeftOutKernels::isa>("isa"),
      field<&LeftOutKernels::kernel>("kernel"),
      field<&LeftOutKernels::reason>("reason"),
  };
  return kFields;
}

template <>
std::span<const Field<ModelStatus>> fields<ModelStatus>() {
  using M = ModelStatus;
  static constexpr std::array kFields = {
      field<&M::name>("name"),
      field<&M::served_name>("served_name", kLeaveOutEmpty),
      field<&M::architecture>("architecture"),
      field<&M::task>("task"),
      field<&M::dimensions>("dimensions"),
      field<&M::dtype>("dtype"),
      field<&M::quantize>("quantize"),
      field<&M::quantize_held>("quantize_held"),
      field<&M::quantize_group_size>("quantize_group_size"),
      field<&M::kv_cache_dtype>("kv_cache_dtype"),
      field<&M::backend>("backend"),
      field<&M::isa>("isa"),
      field<&M::device>("device"),
      field<&M::left_out>("left_out", kLeaveOutEmpty),
      field<&M::num_shard>("num_shard"),
      field<&M::merge_adapter>("merge_adapter"),
      field<&M::deterministic>("deterministic"),
      field<&M::num_threads>("num_threads"),
      field<&M::num_params>("num_params"),
      field<&M::vocab_size>("vocab_size"),
      field<&M::max_total_tokens>("max_total_tokens"),
      field<&M::max_running>("max_running"),
      field<&M::max_batch_tokens>("max_batch_tokens"),
      field<&M::speculate>("speculate"),
      field<&M::drafter>("drafter", kLeaveOutEmpty),
      field<&M::speculation_off>("speculation_off", kLeaveOutEmpty),
      field<&M::max_best_of>("max_best_of"),
      field<&M::max_stop_sequences>("max_stop_sequences"),
      field<&M::max_top_n_tokens>("max_top_n_tokens"),
      field<&M::block_size>("block_size"),
      field<&M::kv_groups>("kv_groups"),
      field<&M::num_blocks>("num_blocks"),
      field<&M::num_blocks_used>("num_blocks_used"),
      field<&M::num_blocks_cached>("num_blocks_cached"),
      field<&M::num_blocks_free>("num_blocks_free"),
      field<&M::num_running>("num_running"),
      field<&M::num_waiting>("num_waiting"),
      field<&M::num_adapters>("num_adapters"),
      field<&M::num_active_adapters>("num_active_adapters"),
      field<&M::adapter_bytes_used>("adapter_bytes_used"),
      field<&M::captured_rows>("captured_rows"),
      field<&M::kv_bytes_per_token>("kv_bytes_per_token"),
      field<&M::weight_bytes_per_token>("weight_bytes_per_token"),
      field<&M::has_chat_template>("has_chat_template"),
      field<&M::tool_parser>("tool_parser", kLeaveOutEmpty),
      field<&M::reasoning_parser>("reasoning_parser", kLeaveOutEmpty),
      field<&M::load_seconds>("load_seconds"),
      field<&M::memory>("memory"),
  };
  return kFields;
}

template <>
std::span<const Field<Counters>> fields<Counters>() {
  using C = Counters;
  static constexpr std::array kFields = {
      field<&C::num_requests>("num_requests"),
      field<&C::num_failed>("num_failed"),
      field<&C::num_cancelled>("num_cancelled"),
      field<&C::num_prompt_tokens>("num_prompt_tokens"),
      field<&C::num_cached_tokens>("num_cached_tokens"),
      field<&C::num_generated_tokens>("num_generated_tokens"),
      field<&C::num_drafted_tokens>("num_drafted_tokens"),
      field<&C::num_skipped_tokens>("num_skipped_tokens"),
      field<&C::num_preemptions>("num_preemptions"),
      field<&C::num_steps>("num_steps"),
  };
  return kFields;
}

template <>
std::span<const Field<ModelStay>> fields<ModelStay>() {
  using S = ModelStay;
  static constexpr std::array kFields = {
      field<&S::pinned>("pinned"),
      field<&S::keep_alive_seconds>("keep_alive_seconds"),
      field<&S::num_uses>("num_uses"),
      field<&S::num_uses_before>("num_uses_before"),
      field<&S::num_waiting>("num_waiting"),
      field<&S::idle_seconds>("idle_seconds"),
      field<&S::expires_in_seconds>("expires_in_seconds"),
  };
  return kFields;
}

template <>
std::span<const Field<OtherModelStatus>> fields<OtherModelStatus>() {
  using O = OtherModelStatus;
  static constexpr std::array kFields = {
      field<&O::name>("name", kRequired),
      field<&O::phase>("phase", kRequired),
      field<&O::phase_detail>("phase_detail", kLeaveOutEmpty),
      field<&O::path>("path", kLeaveOutEmpty),
      field<&O::model>("model"),
      field<&O::last_model>("last_model"),
      field<&O::stay>("stay"),
      field<&O::counters>("counters"),
  };
  return kFields;
}

template <>
std::span<const Field<Status>> fields<Status>() {
  static constexpr std::array kFields = {
      field<&Status::version>("version"),
      field<&Status::pid>("pid"),
      field<&Status::uptime_seconds>("uptime_seconds"),
      field<&Status::phase>("phase", kRequired),
      field<&Status::phase_detail>("phase_detail", kLeaveOutEmpty),
      field<&Status::path>("path", kLeaveOutEmpty),
      field<&Status::socket>("socket"),
      field<&Status::rss_bytes>("rss_bytes"),
      field<&Status::model>("model"),
      field<&Status::last_model>("last_model"),
      field<&Status::stay>("stay"),
      field<&Status::max_models>("max_models"),
      field<&Status::counters>("counters"),
      field<&Status::others>("others", kLeaveOutEmpty),
  };
  return kFields;
}

template <>
std::span<const Field<TokenizeResult>> fields<TokenizeResult>() {
  static constexpr std::array kFields = {
      field<&TokenizeResult::text>("text", kRequired),
      field<&TokenizeResult::tokens>("tokens", kRequired),
      field<&TokenizeResult::spans>("spans"),
  };
  return kFields;
}

OrderedJson to_json(const AcceptedEvent& event) {
  return write_value(event);
}

OrderedJson to_json(const ProgressEvent& event) {
  return write_value(event);
}

OrderedJson to_json(const TokenInfo& token) {
  return write_value(token);
}

OrderedJson to_json(const SequenceResult& sequence) {
  return write_value(sequence);
}

OrderedJson to_json(const TokenEvent& event) {
  return write_value(event);
}

// The best sequence is not wrapped: the text is what nearly every reader is after.
OrderedJson to_json(const DoneEvent& event) {
  OrderedJson out = OrderedJson::object();
  write_fields(event.best, out);
  write_fields(event, out);
  return out;
}

DoneEvent done_event_from_json(const OrderedJson& json) {
  auto event = from_reply<DoneEvent>(json, "done");
  read_fields(json, "done", event.best);
  return event;
}

OrderedJson to_json(const Status& status) {
  return write_value(status);
}

// A daemon from before there was a path tells it by the model's name, or by what it is about to
// load.
template <typename Model>
static void settle_path(Model& model) {
  if (!model.path.empty()) return;
  const bool is_detail = model.phase == "loading" || model.phase == "not loaded";
  if (model.known() != nullptr) {
    model.path = model.known()->name;
  } else if (is_detail) {
    model.path = model.phase_detail;
  }
}

Status status_from_json(const OrderedJson& json) {
  auto status = from_reply<Status>(json, "status");
  settle_path(status);
  for (OtherModelStatus& other : status.others) settle_path(other);
  return status;
}

OrderedJson to_json(const TokenizeResult& result) {
  return write_value(result);
}

TokenizeResult tokenize_result_from_json(const OrderedJson& json) {
  return from_reply<TokenizeResult>(json, "result");
}

OrderedJson to_json(const AdapterStatus& status) {
  return write_value(status);
}

OrderedJson to_json(const AdapterList& list) {
  return write_value(list);
}

AdapterList adapter_list_from_json(const OrderedJson& json) {
  return from_reply<AdapterList>(json, "result");
}

}  // namespace tgi::ipc
