// The method "quantize": writes a quantised checkpoint. Progress events come while it runs, then
// one result; a client that closes cancels it, and nothing is left behind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ipc/protocol.h"

namespace tgi::ipc {

inline constexpr std::string_view kQuantize = "quantize";

struct QuantizeParams {
  std::string model;                       // a folder, or "demo"
  std::string output;                      // a folder that is not there yet; absolute
  std::string format;                      // "int8", "int4", "gptq", "awq", "fp8"
  std::optional<int64_t> group_size;       // columns that share a scale; -1: a row
  std::optional<std::string> calibration;  // a file of text; absent: the built-in text
  std::optional<int64_t> num_sequences;    // of the text, at most
  std::optional<int64_t> sequence_length;  // tokens, at most
  bool act_order = false;                  // gptq
  std::optional<double> damping;           // gptq
  bool force = false;                      // write what is much worse, too
};

struct QuantizeReport {
  std::string output;
  std::string format;
  std::string storage;      // what the format is: "compressed-tensors pack-quantized"
  int64_t bits = 0;         // of a code
  int64_t group_size = 0;   // 0: a row
  std::string calibration;  // where the text came from
  int64_t num_sequences = 0;
  int64_t num_tokens = 0;
  double source_perplexity = 0;
  double perplexity = 0;
  double mean_kl = 0;              // nats: KL(source || quantised), over all tokens
  double top_token_agreement = 0;  // part of the tokens with the same most likely one
  int64_t source_bytes = 0;        // of the weights
  int64_t bytes = 0;
  double seconds = 0;
};

OrderedJson to_json(const QuantizeParams& params);
QuantizeParams quantize_params_from_json(const OrderedJson& params);
OrderedJson to_json(const QuantizeReport& report);
QuantizeReport quantize_report_from_json(const OrderedJson& json);

}  // namespace tgi::ipc
