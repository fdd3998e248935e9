// Products for the experts of a layer as PEFT stores them where a parameter holds all experts
// (target_parameters): two tensors, in which A's rows stand by expert, and B's columns by rank.
//   A (num_experts * rank, x)    expert e's: rows [e * rank, (e + 1) * rank)
//   B (y, rank * num_experts)    expert e's: columns e, e + num_experts, e + 2 * num_experts, ...
// x and y are an expert's inputs and outputs, or the other way around where PEFT took the parameter
// for one that is stored transposed; then what is added to a weight is the transpose of B A.
//
// Which parameter it is, is not written down; the shapes tell.
// Source: ParamWrapper in tuners/lora/layer.py of `peft` 0.17 to 0.21.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/lora/adapter_config.h"
#include "engine/lora/factor.h"
#include "engine/lora/module_sites.h"

namespace tgi {

// Without the marks of one wrapper of a parameter around another.
std::string_view module_of_wrapper(std::string_view module);

// Of the parameters that an adapter was made for, those of this module, which its tensors name. One
// that is named alone ("gate_up_proj") is of experts.
std::vector<std::string> parameters_of(const AdapterConfig& config, std::string_view module);

// The name by which rank_pattern and alpha_pattern know a linear, and a parameter of experts.
std::string scale_key(const AdapterConfig& config, const std::string& module);
std::string expert_scale_key(std::string_view module, const ExpertParameter& parameter);

struct StoredExperts {
  const StoredTensor& a;
  const StoredTensor& b;
  std::span<const ExpertParameter* const> parameters;  // of the module
  int32_t num_experts = 0;
  bool has_old_order = false;  // AdapterConfig
};

struct FittedExperts {
  const ExpertParameter* parameter = nullptr;
  int32_t rank = 0;
  Factor a;  // (num_experts * rank, x)
  Factor b;  // (y, rank * num_experts)
  int32_t num_experts = 0;
  bool is_turned = false;  // x are the outputs

  Factor a_of(int32_t expert) const;
  // The rows of these outputs.
  Factor b_of(int32_t expert, int64_t first_output, int64_t num_outputs) const;

 private:
  Factor rows_of_a(int32_t expert) const;
  Factor columns_of_b(int32_t expert) const;
};

// "(6 r, 24) and (48, 6 r) for gate_up_proj, or (6 r, 16) and (24, 6 r) for down_proj, of rank r".
std::string shapes_of_experts(std::span<const ExpertParameter* const> parameters,
                              int32_t num_experts);

// Nothing where the shapes are those of no parameter.
std::optional<FittedExperts> fit_experts(const StoredExperts& stored);

}  // namespace tgi
