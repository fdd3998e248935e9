// A preset: a named model with what belongs to it, as a Modelfile says it. It is kept as a
// Modelfile too (preset_files.h), so that what is written by hand and what tgi keeps are one
// format, with one reader.
//
// What tgi can't honour is refused by name: instructions and parameters it does not know, and
// templates in Go's notation.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tgi {

// Absent: the model's own default, or that of the API. A request that says one wins.
struct PresetParameters {
  std::optional<double> temperature;  // 0: always the most likely token
  std::optional<int64_t> top_k;       // 0: off
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> typical_p;
  std::optional<double> repeat_penalty;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  std::optional<int64_t> seed;         // below 0: another one each time
  std::optional<int64_t> num_predict;  // tokens of an answer; below 0: all that fits
  std::optional<int64_t> num_ctx;      // tokens of prompt and answer: max_total_tokens of a load
  std::optional<int64_t> speculate;    // tokens to be drafted for a step at most: of a load
  std::vector<std::string> stop;
};

struct PresetMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;

  bool operator==(const PresetMessage&) const = default;
};

struct Preset {
  std::string from;  // the model; of one that is kept "demo" or an absolute path
  PresetParameters parameters;
  std::optional<std::string> system{};
  std::optional<std::string> chat_template{};  // in Jinja, in place of the model's
  std::string adapter{};  // merged into the weights, or beside those that are quantised; "": none
  std::vector<PresetMessage> messages{};  // before those of a conversation
  std::vector<std::string> licenses{};
  // A JSON schema: of the answers to requests that ask for no form.
  std::optional<std::string> schema{};
  std::string speculator{};             // a folder that drafts, or kOwnLayer; "": none
  std::string draft_model{};            // a smaller model that drafts; not both; "": none
  std::vector<std::string> not_used{};  // what the model brings and nothing reads, for people
};

// One parameter of PARAMETER lines and of ollama's `parameters`. Exactly one member is not null.
struct PresetParameter {
  std::string_view name;
  std::optional<double> PresetParameters::*real = nullptr;
  std::optional<int64_t> PresetParameters::*whole = nullptr;
  std::vector<std::string> PresetParameters::*texts = nullptr;  // each line adds one
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;  // low itself is not allowed
};

std::span<const PresetParameter> preset_parameters();

// Throws kInvalidArgument: a name that there is not (with those there are), a value that is none.
void set_parameter(PresetParameters& to, std::string_view name, const std::string& value);

// The lines "NAME VALUE" of all that are given.
struct ParameterLine {
  std::string_view name;
  std::string value;
};
std::vector<ParameterLine> parameter_lines(const PresetParameters& parameters);

// Throws kInvalidArgument for a role that is none, kUnsupported for a template in Go's notation.
void check_message_role(std::string_view role);
void check_template(std::string_view text);

// Throws kInvalidArgument for what is no JSON, or no object. Whether answers can be kept to it is
// found out when it is loaded.
void check_schema(std::string_view text);

// Throws kInvalidArgument or kUnsupported with the line and the column, what was expected and got.
Preset parse_preset(std::string_view text);

// The same of lines that were read from another notation.
struct ModelfileLine;
Preset preset_of_lines(std::span<const ModelfileLine> lines);

// What parse_preset reads as the same. Throws as modelfile_line.
std::string to_modelfile(const Preset& preset);

// What `preset` says over what `base` says: instructions one by one, parameters one by one.
Preset over(Preset base, Preset preset);

}  // namespace tgi
