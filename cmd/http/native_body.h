// The bodies of TGI's own routes and the rules they must keep, in TGI's order and words.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cmd/http/body_table.h"
#include "cmd/http/guide_body.h"
#include "cmd/http/service.h"
#include "ipc/protocol.h"

namespace tgi::http {

// As LoRAX: adapters that are merged for the request.
struct MergedAdaptersBody {
  std::vector<std::string> ids;
  std::vector<double> weights;  // none: all 1
  std::optional<std::string> merge_strategy;
  std::optional<double> density;
  std::optional<std::string> majority_sign_method;
};

struct GenerateParameters : GuideFields {
  std::optional<uint64_t> best_of;
  std::optional<double> temperature;
  std::optional<double> repetition_penalty;
  std::optional<double> frequency_penalty;
  std::optional<double> top_p;
  std::optional<double> typical_p;
  std::optional<int32_t> top_k;
  std::optional<uint32_t> max_new_tokens;
  std::vector<std::string> stop;
  std::optional<uint64_t> seed;
  std::optional<uint32_t> top_n_tokens;
  std::optional<uint64_t> truncate;
  bool do_sample = false;
  std::optional<bool> return_full_text;
  bool watermark = false;
  bool details = false;
  bool decoder_input_details = false;
  std::optional<std::string> adapter_id;
  std::optional<std::string> adapter_source;
  std::optional<std::string> api_token;
  std::optional<MergedAdaptersBody> merged_adapters;
  // Not TGI's.
  std::optional<double> min_p;
  std::optional<double> presence_penalty;
  bool ignore_eos_token = false;
  std::optional<uint32_t> min_new_tokens;
  std::optional<uint32_t> speculate;
  std::optional<uint32_t> return_k_alternatives;
};

// The body of /generate and /generate_stream; `stream` is for / and /invocations alone.
struct GenerateBody {
  std::string inputs;
  std::optional<GenerateParameters> parameters;
  bool stream = false;
};

// Of /tokenize, for whose clients a body of /generate does, too.
struct TokenizeBody {
  std::string inputs;
  bool add_special_tokens = true;
  std::optional<GenerateParameters> parameters;
  bool stream = false;
};

template <>
std::span<const BodyField<MergedAdaptersBody>> body_fields<MergedAdaptersBody>();
template <>
std::span<const BodyField<GenerateParameters>> body_fields<GenerateParameters>();
template <>
std::span<const BodyField<GenerateBody>> body_fields<GenerateBody>();
template <>
std::span<const BodyField<TokenizeBody>> body_fields<TokenizeBody>();
template <>
std::span<const ExtraField> extra_fields<GenerateParameters>();
template <>
std::span<const ExtraField> extra_fields<GenerateBody>();
template <>
std::span<const ExtraField> extra_fields<TokenizeBody>();
template <>
struct SchemaName<TokenizeBody> {
  static constexpr std::string_view value = "TokenizeRequest";
};
template <>
struct SchemaName<MergedAdaptersBody> {
  static constexpr std::string_view value = "AdapterParameters";
};
template <>
struct SchemaName<GenerateParameters> {
  static constexpr std::string_view value = "GenerateParameters";
};
template <>
struct SchemaName<GenerateBody> {
  static constexpr std::string_view value = "CompatGenerateRequest";
};

// The parameters of a body without any: TGI samples then.
GenerateParameters default_parameters();

// Throws the first rule that is broken, of those that need no token to be counted.
void check_parameters(const GenerateParameters& parameters,
                      const std::string& inputs,
                      bool stream,
                      const ApiOptions& options);

// REQUIRES: check_parameters. What is merged, without the folders; none: nothing is.
std::optional<ipc::MergedAdapters> merged_adapters_of(const GenerateParameters& parameters);

// REQUIRES: check_parameters. For the daemon, which checks the rest.
ipc::GenerateRequest to_daemon(const GenerateParameters& parameters,
                               const std::string& inputs,
                               bool stream,
                               const ApiOptions& options);

}  // namespace tgi::http
