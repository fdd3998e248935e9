// One table of the generation parameters for `tgi generate`, `tgi chat` and the chat's /set. The
// ranges live in the codec (ipc/requests.cc), which checks every value here too.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ipc/protocol.h"

namespace tgi {

struct SamplingFlag {
  enum class Kind {
    kInteger,
    kNumber,
    kTexts,      // may be given several times
    kSwitchOn,   // sets the field to true
    kSwitchOff,  // sets it to false
  };
  std::string_view name;  // of the flag, without dashes in front
  std::string_view field;
  Kind kind;
  std::string_view help;
  bool in_chat = true;
  std::string_view hint = {};  // said after a value that the codec refuses
};

std::span<const SamplingFlag> sampling_flags();

// The parameters as JSON under construction: absent means default.
struct SamplingFlags {
  ipc::OrderedJson params = ipc::OrderedJson::object();
};

void add_sampling_flags(CLI::App& app, SamplingFlags& flags, bool for_chat);

// How much a model that reasons is to reason.
struct ReasoningFlags {
  std::optional<std::string> effort;  // a word that its template knows
  std::optional<int64_t> max_tokens;

  bool are_given() const { return effort || max_tokens; }
};
void add_reasoning_flags(CLI::App& app, ReasoningFlags& flags);

// Whether a seed was given and nothing that turns sampling on: it is never drawn from.
bool has_idle_seed(const SamplingFlags& flags);
inline constexpr std::string_view kIdleSeed =
    "the seed has no effect: nothing is drawn without --do-sample, --temperature, --top-k, "
    "--top-p, --typical-p or --min-p";

ipc::GenerateParams to_params(const SamplingFlags& flags);

// For /set, with the names as on the command line ("top-k" or "top_k"). `value` "off" takes a
// parameter back to its default; a text in double quotes may have JSON escapes. Throws
// kInvalidArgument naming the parameter.
void set_sampling_flag(SamplingFlags& flags, std::string_view name, std::string_view value);

// "name value" per line, for those that are set.
std::string show_sampling_flags(const SamplingFlags& flags);

}  // namespace tgi
