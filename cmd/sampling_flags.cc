#include "cmd/sampling_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/error.h"

namespace tgi {
namespace {

using Kind = SamplingFlag::Kind;
using ipc::OrderedJson;

constexpr std::array kSamplingFlags = {
    SamplingFlag{"max-new-tokens", "max_new_tokens", Kind::kInteger,
                 "generate at most this many tokens; default: all that fit the model's context"},
    SamplingFlag{"min-new-tokens", "min_new_tokens", Kind::kInteger,
                 "draw no end of the answer before this many tokens; 0 is off"},
    SamplingFlag{"temperature", "temperature", Kind::kNumber,
                 "more than 0; below 1 sharpens, above 1 flattens the distribution; turns sampling "
                 "on",
                 true, "; without it the likeliest token is taken each time, which is greedy"},
    SamplingFlag{"top-k", "top_k", Kind::kInteger,
                 "sample from the k likeliest tokens; turns sampling on"},
    SamplingFlag{
        "top-p", "top_p", Kind::kNumber,
        "sample from the likeliest tokens that make up this share, above 0 and up to 1; turns "
        "sampling on"},
    SamplingFlag{"min-p", "min_p", Kind::kNumber,
                 "sample from tokens at least this share as likely as the likeliest, 0 to 1; turns "
                 "sampling on"},
    SamplingFlag{
        "typical-p", "typical_p", Kind::kNumber,
        "sample from the most typical tokens that make up this share, above 0 and up to 1; "
        "turns sampling on"},
    SamplingFlag{"repetition-penalty", "repetition_penalty", Kind::kNumber,
                 "more than 0; above 1 makes tokens of prompt and answer less likely; 1 is off"},
    SamplingFlag{"frequency-penalty", "frequency_penalty", Kind::kNumber,
                 "-2 to 2; taken off a token's logit once per time it was generated"},
    SamplingFlag{"presence-penalty", "presence_penalty", Kind::kNumber,
                 "-2 to 2; taken off the logit of every token that was generated"},
    SamplingFlag{"seed", "seed", Kind::kInteger,
                 "seed of the draws; the same seed gives the same text; default: random, reported "
                 "back"},
    SamplingFlag{"stop", "stop", Kind::kTexts,
                 "end the answer after this text; may be given several times"},
    SamplingFlag{"exclude-stop-text", "include_stop_text", Kind::kSwitchOff,
                 "leave the stop text out of the answer"},
    SamplingFlag{"do-sample", "do_sample", Kind::kSwitchOn,
                 "draw tokens at random; default: take the likeliest one each time"},
    SamplingFlag{"best-of", "best_of", Kind::kInteger,
                 "generate this many answers and keep the likeliest; needs sampling", false},
    SamplingFlag{"top-n-tokens", "top_n_tokens", Kind::kInteger,
                 "report this many of the likeliest tokens at each place", false},
    SamplingFlag{"truncate", "truncate", Kind::kInteger,
                 "keep only the last N tokens of the prompt", false},
    SamplingFlag{"ignore-eos", "ignore_eos", Kind::kSwitchOn,
                 "go on after the model's end token, up to --max-new-tokens"},
    SamplingFlag{"return-full-text", "return_full_text", Kind::kSwitchOn,
                 "put the prompt before the answer", false},
    SamplingFlag{"watermark", "watermark", Kind::kSwitchOn, "watermark the answer"},
    SamplingFlag{"prompt-logprobs", "prompt_logprobs", Kind::kSwitchOn,
                 "report the tokens of the prompt with their log probabilities; does not use the "
                 "prefix cache",
                 false},
    SamplingFlag{"no-prefix-cache", "use_prefix_cache", Kind::kSwitchOff,
                 "compute the whole prompt, even what the prefix cache has"},
    SamplingFlag{"speculate", "speculate", Kind::kInteger,
                 "draft at most this many tokens for a step: the answer is the same; 0: none; "
                 "default: as the model was loaded, which is the most"},
};

[[noreturn]] void fail_value(const SamplingFlag& flag,
                             std::string_view expected,
                             std::string_view got) {
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected {}, got \"{}\"", flag.name, expected, got));
}

template <typename Number>
bool parse_whole(std::string_view text, Number& out) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), out);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

OrderedJson parse_value(const SamplingFlag& flag, std::string_view text) {
  uint64_t large = 0;
  int64_t integer = 0;
  double number = 0;
  switch (flag.kind) {
    case Kind::kInteger:
      if (parse_whole(text, large)) return large;
      if (parse_whole(text, integer)) return integer;
      fail_value(flag, "a whole number", text);
    case Kind::kNumber:
      if (parse_whole(text, number) && std::isfinite(number)) return number;
      fail_value(flag, "a number", text);
    case Kind::kTexts:
      if (text.empty()) fail_value(flag, "a text that is not empty", text);
      return OrderedJson::array({std::string(text)});
    case Kind::kSwitchOn:
    case Kind::kSwitchOff:
      if (text == "on" || text == "true") return flag.kind == Kind::kSwitchOn;
      fail_value(flag, "on or off", text);
  }
  return {};
}

// Sets one parameter after the codec has agreed to it; the error then names the flag, not the
// field.
void set_value(OrderedJson& params, const SamplingFlag& flag, OrderedJson value) {
  const std::string field(flag.field);
  try {
    ipc::generate_params_from_json({{field, value}});
  } catch (const Error& error) {
    std::string_view message = error.what();
    // "stop.0: expected ...": neither the field nor the place in the list is the user's word.
    if (message.starts_with(flag.field)) message.remove_prefix(flag.field.size());
    if (message.starts_with('.'))
      message.remove_prefix(std::min(message.find(':'), message.size()));
    throw Error(Code::kInvalidArgument, fmt::format("{}{}{}", flag.name, message, flag.hint));
  }
  if (flag.kind == Kind::kTexts && params.contains(field)) {
    for (auto& item : value) params[field].push_back(std::move(item));
  } else {
    params[field] = std::move(value);
  }
}

// For CLI11: a wrong value is a usage error like a wrong flag.
void set_from_command_line(OrderedJson& params, const SamplingFlag& flag, const std::string& text) {
  try {
    set_value(params, flag, parse_value(flag, text));
  } catch (const Error& error) {
    throw CLI::ValidationError(fmt::format("--{}", error.what()));
  }
}

std::string_view value_name(Kind kind) {
  return kind == Kind::kInteger ? "N" : kind == Kind::kNumber ? "X" : "TEXT";
}

}  // namespace

std::span<const SamplingFlag> sampling_flags() {
  return kSamplingFlags;
}

void add_reasoning_flags(CLI::App& app, ReasoningFlags& flags) {
  app.add_option("--max-reasoning-tokens", flags.max_tokens,
                 "of a model that reasons: end its reasoning after this many tokens")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--reasoning-effort", flags.effort,
                 "how much a model that reasons is to reason, in words that its template knows: "
                 "none, low, medium, high")
      ->type_name("WORD");
}

void add_sampling_flags(CLI::App& app, SamplingFlags& flags, bool for_chat) {
  OrderedJson& params = flags.params;
  for (const SamplingFlag& flag : kSamplingFlags) {
    if (for_chat && !flag.in_chat) continue;
    const std::string name = fmt::format("--{}", flag.name);
    const std::string help(flag.help);
    CLI::Option* option = nullptr;
    if (flag.kind == Kind::kSwitchOn || flag.kind == Kind::kSwitchOff) {
      option = app.add_flag_callback(
          name, [&params, &flag] { set_from_command_line(params, flag, "on"); }, help);
    } else if (flag.kind == Kind::kTexts) {
      option = app.add_option_function<std::vector<std::string>>(
                      name,
                      [&params, &flag](const std::vector<std::string>& texts) {
                        for (const std::string& text : texts) {
                          set_from_command_line(params, flag, text);
                        }
                      },
                      help)
                   ->type_name(std::string(value_name(flag.kind)))
                   ->allow_extra_args(false);
    } else {
      option = app.add_option_function<std::string>(
                      name,
                      [&params, &flag](const std::string& text) {
                        set_from_command_line(params, flag, text);
                      },
                      help)
                   ->type_name(std::string(value_name(flag.kind)));
    }
    option->group("Generation options");
  }
}

bool has_idle_seed(const SamplingFlags& flags) {
  const ipc::GenerateParams params = to_params(flags);
  const bool is_sampling = params.do_sample.value_or(false) || params.temperature || params.top_k ||
                           params.top_p || params.typical_p || params.min_p;
  return params.seed && !is_sampling;
}

ipc::GenerateParams to_params(const SamplingFlags& flags) {
  return ipc::generate_params_from_json(flags.params);
}

void set_sampling_flag(SamplingFlags& flags, std::string_view name, std::string_view value) {
  std::string wanted(name);
  std::replace(wanted.begin(), wanted.end(), '_', '-');
  for (const SamplingFlag& flag : kSamplingFlags) {
    if (!flag.in_chat || flag.name != wanted) continue;
    if (value == "off") {
      flags.params.erase(std::string(flag.field));
      return;
    }
    std::string text(value);
    if (flag.kind == Kind::kTexts && text.starts_with('"')) {
      const OrderedJson parsed = OrderedJson::parse(text, nullptr, false);
      if (!parsed.is_string()) fail_value(flag, "a text in double quotes", value);
      text = parsed.get<std::string>();
    }
    set_value(flags.params, flag, parse_value(flag, text));
    return;
  }
  std::string known;
  for (const SamplingFlag& flag : kSamplingFlags) {
    if (flag.in_chat) known += fmt::format("{}{}", known.empty() ? "" : ", ", flag.name);
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: no such parameter; known are {}", name, known));
}

std::string show_sampling_flags(const SamplingFlags& flags) {
  std::string out;
  for (const SamplingFlag& flag : kSamplingFlags) {
    const auto it = flags.params.find(std::string(flag.field));
    if (it == flags.params.end()) continue;
    const bool is_switch = flag.kind == Kind::kSwitchOn || flag.kind == Kind::kSwitchOff;
    out += fmt::format("{} {}\n", flag.name, is_switch ? "on" : it->dump());
  }
  return out.empty() ? "all parameters have their defaults\n" : out;
}

}  // namespace tgi
