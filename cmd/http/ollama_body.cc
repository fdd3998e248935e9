#include "cmd/http/ollama_body.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace tgi::http {
namespace {

// Its repeat_penalty of 1.1 is not among them: the runner that most of its models have never reads
// it.
constexpr LlamaDefaults kOllamaDefaults = {
    .temperature = 0.8, .top_k = 40, .top_p = 0.9, .min_p = 0};

template <typename B>
constexpr std::array<BodyField<B>, 2> model_rows() {
  return {{
      inherited_field<B, &OllamaModel::model>(
          "model", {"the served model by its name, with or without :latest, or a LoRA adapter"}),
      inherited_field<B, &OllamaModel::name>("name", {"what `model` was called before"}),
  }};
}

template <typename B>
constexpr std::array<BodyField<B>, 7> ask_rows() {
  return {{
      inherited_field<B, &OllamaAsk::stream>("stream",
                                             {"lines of JSON, one for each token; default true"}),
      inherited_field<B, &OllamaAsk::format>(
          "format", {"\"json\", or a JSON schema that the answer satisfies"}),
      inherited_field<B, &OllamaAsk::options>("options"),
      inherited_field<B, &OllamaAsk::think>(
          "think", {"whether the model reasons first, or how much: low, medium, high"}),
      inherited_field<B, &OllamaAsk::logprobs>("logprobs",
                                               {"list the tokens with their log-probabilities"}),
      inherited_field<B, &OllamaAsk::top_logprobs>("top_logprobs",
                                                   {"alternatives to list for each token"}),
      inherited_field<B, &OllamaKept::keep_alive>("keep_alive", {kKeepAliveHelp}),
  }};
}

constexpr std::string_view kDecidedAtLoad =
    "where and how the model runs was decided when it was loaded";
constexpr std::string_view kOllamaTextAlone = "prompts are text alone";

// Of bodies that make images.
constexpr std::array kOllamaImages = {
    ExtraField{"width", "[0]", "no images are made"},
    ExtraField{"height", "[0]", "no images are made"},
    ExtraField{"steps", "[0]", "no images are made"},
};

// In the requests of every ollama client that lets people set options.
constexpr std::array kOllamaVectorExtras = {
    ExtraField{"options", kAnything, "there is nothing to choose in a vector"},
};

void read_think(const std::optional<OrderedJson>& think, const ApiOptions& options, ChatBody& to) {
  // A model that reasons does so unless it is told not to, and its reasoning is told.
  if (!think) return;
  std::string level = "medium";
  if (think->is_boolean()) {
    if (!think->get<bool>()) {
      to.reasoning_effort = "none";
      to.include_reasoning = false;
      return;
    }
  } else if (think->is_string()) {
    level = think->get<std::string>();
    static constexpr std::array<std::string_view, 4> kLevels = {"low", "medium", "high", "max"};
    require(std::ranges::find(kLevels, level) != kLevels.end(),
            "`think` must be true, false, or one of {}. Given: {}", fmt::join(kLevels, ", "),
            level.substr(0, 100));
  } else {
    fail_body_type("think", "a boolean or a level", *think);
  }
  to.reasoning_effort = level;
  require(options.has_reasoning, "\"{}\" does not support thinking", options.model_id);
}

void read_format(const std::optional<OrderedJson>& format, OpenAiParameters& to) {
  if (!format || *format == OrderedJson("")) return;
  if (*format == OrderedJson("json")) {
    to.response_format = OrderedJson{{"type", "json_object"}};
  } else if (format->is_object()) {
    to.json_schema = *format;
  } else {
    fail_body("format", "expected \"json\" or a JSON schema");
  }
}

void read_options(const OllamaOptions& from, OpenAiParameters& to) {
  check_ranges(from);
  to_openai(from, kOllamaDefaults, to);
  const int64_t num_predict = from.num_predict.value_or(-1);
  if (num_predict > 0) set_num_predict(num_predict, to);
}

// What chats and generations have in common.
void read_ask(const OllamaAsk& from, OpenAiParameters& to) {
  to.stream = from.stream.value_or(true);
  read_format(from.format, to);
  read_options(from.options.value_or(OllamaOptions()), to);
}

void read_chat_ask(const OllamaAsk& from, const ApiOptions& options, ChatBody& to) {
  read_ask(from, to);
  read_think(from.think, options, to);
  to.logprobs = from.logprobs || from.top_logprobs.value_or(0) > 0;
  to.top_logprobs = from.top_logprobs;
}

// A message as templates and OpenAI's routes know it.
OrderedJson chat_message_of(const OrderedJson& from, const std::string& path) {
  if (!from.is_object()) fail_body_type(path, "an object", from);
  OrderedJson out = OrderedJson::object();
  for (const auto& item : from.items()) {
    if (item.value().is_null()) continue;
    if (item.key() == "images") {
      const bool has_any = !item.value().is_array() || !item.value().empty();
      require(!has_any, "`{}.images` is not supported ({}); leave it out", path, kOllamaTextAlone);
    } else if (item.key() == "tool_name") {
      out["name"] = item.value();
    } else {
      out[item.key()] = item.value();
    }
  }
  if (!out.contains("content")) out["content"] = "";
  if (out.contains("tool_calls") && !out["tool_calls"].is_array()) {
    fail_body_type(path + ".tool_calls", "an array", out["tool_calls"]);
  }
  return out;
}

}  // namespace

template <>
std::span<const BodyField<OllamaOptions>> body_fields<OllamaOptions>() {
  using O = OllamaOptions;
  static constexpr auto kFields =
      joined_rows(llama_sampling_rows<O>(),
                  std::array<BodyField<O>, 1>{counting_field<O, &O::num_predict>(
                      "num_predict", {"tokens of the answer; 0 and less: all that fits"})});
  return kFields;
}

template <>
std::span<const ExtraField> extra_fields<OllamaOptions>() {
  static constexpr std::array kExtras = {
      ExtraField{"num_ctx", kAnything,
                 "the context is that of the served model: what does not fit is refused"},
      ExtraField{"num_keep", kAnything, "nothing is dropped from a context that is full"},
      ExtraField{"num_batch", kAnything, kDecidedAtLoad},
      ExtraField{"num_gpu", kAnything, kDecidedAtLoad},
      ExtraField{"main_gpu", kAnything, kDecidedAtLoad},
      ExtraField{"num_thread", kAnything, kDecidedAtLoad},
      ExtraField{"num_gqa", kAnything, kDecidedAtLoad},
      ExtraField{"numa", kAnything, kDecidedAtLoad},
      ExtraField{"low_vram", kAnything, kDecidedAtLoad},
      ExtraField{"f16_kv", kAnything, kDecidedAtLoad},
      ExtraField{"use_mmap", kAnything, kDecidedAtLoad},
      ExtraField{"use_mlock", kAnything, kDecidedAtLoad},
      ExtraField{"vocab_only", "[false]", "a model is loaded whole"},
      ExtraField{"logits_all", kAnything, "`logprobs` asks for them"},
      ExtraField{"embedding_only", kAnything, "the model's files say what it is made for"},
      ExtraField{"penalize_newline", kAnything, "ollama does not read it any more"},
      ExtraField{"mirostat", "[0]", "there is no such sampler"},
      ExtraField{"mirostat_tau", kAnything, "belongs to mirostat, which is refused"},
      ExtraField{"mirostat_eta", kAnything, "belongs to mirostat, which is refused"},
      ExtraField{"tfs_z", "[1]", "there is no such sampler"},
  };
  return kExtras;
}

template <>
std::span<const BodyField<OllamaChatBody>> body_fields<OllamaChatBody>() {
  using B = OllamaChatBody;
  static constexpr auto kFields =
      joined_rows(model_rows<B>(), ask_rows<B>(),
                  std::array<BodyField<B>, 2>{
                      body_field<&B::messages>(
                          "messages", {"the conversation; none: whether the model is here"}),
                      body_field<&B::tools>("tools", {"functions that the model may call"})});
  return kFields;
}

template <>
std::span<const BodyField<OllamaGenerateBody>> body_fields<OllamaGenerateBody>() {
  using B = OllamaGenerateBody;
  static constexpr auto kFields = joined_rows(
      model_rows<B>(), ask_rows<B>(),
      std::array<BodyField<B>, 3>{
          body_field<&B::prompt>("prompt", {"none or \"\": whether the model is here"}),
          body_field<&B::system>("system", {"the message of the system before the prompt"}),
          body_field<&B::raw>("raw", {"the prompt as it is, without the chat template"})});
  return kFields;
}

template <>
std::span<const BodyField<OllamaEmbedBody>> body_fields<OllamaEmbedBody>() {
  using B = OllamaEmbedBody;
  static constexpr auto kFields = joined_rows(
      model_rows<B>(),
      std::array<BodyField<B>, 4>{
          inherited_field<B, &OllamaKept::keep_alive>("keep_alive", {kKeepAliveHelp}),
          body_field<&B::input>("input", {"a text or a list of texts"}),
          body_field<&B::truncate>("truncate",
                                   {"cut off the end of what is too long; default true"}),
          body_field<&B::dimensions>("dimensions", {"the first so many numbers of each vector"})});
  return kFields;
}

template <>
std::span<const BodyField<OllamaEmbeddingsBody>> body_fields<OllamaEmbeddingsBody>() {
  using B = OllamaEmbeddingsBody;
  static constexpr auto kFields = joined_rows(
      model_rows<B>(), std::array<BodyField<B>, 2>{inherited_field<B, &OllamaKept::keep_alive>(
                                                       "keep_alive", {kKeepAliveHelp}),
                                                   body_field<&B::prompt>("prompt", {"the text"})});
  return kFields;
}

template <>
std::span<const BodyField<OllamaCreateBody>> body_fields<OllamaCreateBody>() {
  using B = OllamaCreateBody;
  static constexpr auto kFields = joined_rows(
      model_rows<B>(),
      std::array<BodyField<B>, 7>{
          body_field<&B::from>("from", {"a model of this server by its name, or a preset"}),
          body_field<&B::system>("system", {"the system prompt of chats that bring none"}),
          body_field<&B::chat_template>("template",
                                        {"a chat template in Jinja, in place of the model's"}),
          body_field<&B::parameters>("parameters",
                                     {"defaults of `options`, as PARAMETER of a Modelfile"}),
          body_field<&B::messages>("messages", {"that every chat begins with"}),
          body_field<&B::license>("license", {"a text or a list of texts"}),
          body_field<&B::stream>("stream", {"lines of JSON; default true"})});
  return kFields;
}

template <>
std::span<const BodyField<OllamaModelBody>> body_fields<OllamaModelBody>() {
  using B = OllamaModelBody;
  static constexpr auto kFields =
      joined_rows(model_rows<B>(), std::array<BodyField<B>, 1>{body_field<&B::stream>(
                                       "stream", {"of a pull: lines of JSON; default true"})});
  return kFields;
}

template <>
std::span<const ExtraField> extra_fields<OllamaChatBody>() {
  static constexpr std::array kExtras = {
      ExtraField{"truncate", "[true, false]", "a conversation that does not fit is refused"},
      ExtraField{"shift", "[true, false]", "nothing is dropped from a context that is full"},
  };
  return kExtras;
}

template <>
std::span<const ExtraField> extra_fields<OllamaGenerateBody>() {
  static constexpr std::array kOwn = {
      ExtraField{"suffix", R"([""])", "no model is asked to fill in the middle"},
      ExtraField{"template", R"([""])", "the chat template is the model's own; see `raw`"},
      ExtraField{"context", "[[]]", "/api/chat takes a whole conversation"},
      ExtraField{"images", "[[]]", kOllamaTextAlone},
      ExtraField{"truncate", "[true, false]", "a prompt that does not fit is refused"},
      ExtraField{"shift", "[true, false]", "nothing is dropped from a context that is full"},
  };
  static constexpr auto kExtras = joined_rows(kOwn, kOllamaImages);
  return kExtras;
}

template <>
std::span<const ExtraField> extra_fields<OllamaEmbedBody>() {
  return kOllamaVectorExtras;
}

template <>
std::span<const ExtraField> extra_fields<OllamaEmbeddingsBody>() {
  return kOllamaVectorExtras;
}

template <>
std::span<const ExtraField> extra_fields<OllamaCreateBody>() {
  static constexpr std::array kExtras = {
      ExtraField{"files", "[{}]", "no files are taken; `tgi create` reads those of this machine"},
      ExtraField{"adapters", "[{}]", "no files are taken; `tgi create` reads ADAPTER"},
      ExtraField{"quantize", R"([""])", "`tgi quantize` rounds models"},
      ExtraField{"quantization", R"([""])", "`tgi quantize` rounds models"},
  };
  return kExtras;
}

template <>
std::span<const ExtraField> extra_fields<OllamaModelBody>() {
  static constexpr std::array kExtras = {
      ExtraField{"verbose", kAnything, "everything is always told but the vocabulary"},
      ExtraField{"insecure", kAnything, "nothing is pulled"},
      ExtraField{"system", R"([""])", "the model is shown as it is"},
      ExtraField{"template", R"([""])", "the model is shown as it is"},
      ExtraField{"options", kAnything, "the model is shown as it is"},
      ExtraField{"username", kAnything, "nothing is pulled"},
      ExtraField{"password", kAnything, "nothing is pulled"},
  };
  return kExtras;
}

namespace {

constexpr std::array<Term, 6> ollama_terms(std::string_view prompt) {
  return {{
      {"max_new_tokens", "num_predict"},
      {"max_completion_tokens", "num_predict"},
      {"max_tokens", "num_predict"},
      {"repetition_penalty", "repeat_penalty"},
      {"`json_schema`", "`format`"},
      {"`inputs`", prompt},
  }};
}

}  // namespace

std::span<const Term> ollama_chat_terms() {
  static constexpr auto kTerms = ollama_terms("`messages`");
  return kTerms;
}

std::span<const Term> ollama_generate_terms() {
  static constexpr auto kTerms = ollama_terms("`prompt`");
  return kTerms;
}

const std::string& ollama_name(const OllamaModel& body) {
  const std::optional<std::string>& name = body.model ? body.model : body.name;
  if (!name || name->empty()) throw validation_error("`model` is required");
  return *name;
}

std::string without_latest(const std::string& name) {
  constexpr std::string_view kLatest = ":latest";
  return name.ends_with(kLatest) ? name.substr(0, name.size() - kLatest.size()) : name;
}

ChatBody to_chat(const OllamaChatBody& body, const ApiOptions& options) {
  ChatBody out;
  read_chat_ask(body, options, out);
  out.messages = OrderedJson::array();
  for (size_t i = 0; i < body.messages->size(); ++i) {
    out.messages.push_back(chat_message_of((*body.messages)[i], fmt::format("messages[{}]", i)));
  }
  out.tools = body.tools;
  return out;
}

ChatBody to_chat(const OllamaGenerateBody& body, const ApiOptions& options) {
  ChatBody out;
  read_chat_ask(body, options, out);
  out.messages = OrderedJson::array();
  if (!body.system.value_or("").empty()) {
    out.messages.push_back({{"role", "system"}, {"content", *body.system}});
  }
  out.messages.push_back({{"role", "user"}, {"content", *body.prompt}});
  return out;
}

CompletionBody to_completion(const OllamaGenerateBody& body, const ApiOptions& options) {
  require(body.raw || body.system.value_or("").empty(),
          "`system` is not supported with \"{}\", which has no chat template to show it by; put it "
          "into `prompt`",
          options.model_id);
  const bool asks_to_think = body.think && *body.think != OrderedJson(false);
  require(!asks_to_think, "`think` goes with a chat template, and this prompt is shown without");
  CompletionBody out;
  read_ask(body, out);
  out.prompt = *body.prompt;
  if (body.logprobs || body.top_logprobs) out.logprobs = body.top_logprobs.value_or(0);
  return out;
}

bool is_raw(const OllamaGenerateBody& body, const ApiOptions& options) {
  return body.raw || !options.has_chat_template;
}

}  // namespace tgi::http
