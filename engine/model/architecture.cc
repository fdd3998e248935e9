#include "engine/model/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/model/absent_classes.h"
#include "engine/model/config_fields.h"
#include "engine/model/sentence_files.h"
#include "engine/model/state_layout.h"
#include "engine/model/tensor_table.h"
#include "engine/weights/ggml/gguf_checkpoint.h"

namespace tgi {
namespace {

constexpr const char* kConfigFile = "config.json";
constexpr const char* kGenerationConfigFile = "generation_config.json";

bool has(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// What `transformers` puts behind a family's name for what is done with it.
struct ClassEnding {
  std::string_view ending;
  std::optional<Task> task;  // nothing: that of the family
};
constexpr ClassEnding kClassEndings[] = {
    {"ForSequenceClassification", Task::kClassify},
    {"ForTokenClassification", Task::kClassifyTokens},
    {"ForCausalLM", std::nullopt},
    {"ForMaskedLM", Task::kEmbed},
    {"ForPreTraining", Task::kEmbed},
    {"LMHeadModel", std::nullopt},
    {"Model", Task::kEmbed},
};

std::string_view stem_of(std::string_view name) {
  for (const ClassEnding& one : kClassEndings) {
    if (name.ends_with(one.ending)) return name.substr(0, name.size() - one.ending.size());
  }
  return name;
}

// The file says which of sentence-transformers' classes a model is of, since version 5; the
// cross-encoders of older ones have neither it nor modules.
Task task_of_modules(const FileSource& files) {
  const auto text = files.find_text(kSentenceFile);
  if (!text) return Task::kEmbed;
  try {
    const Json json = parse_json(*text);
    const JsonReader config(json, "");
    const std::string type = config.string_or("model_type", "SentenceTransformer");
    if (type == "SentenceTransformer") return Task::kEmbed;
    if (type == "CrossEncoder") return Task::kClassify;
    throw Error(
        Code::kUnsupported,
        fmt::format("{}: '{}' is not supported; known are SentenceTransformer, CrossEncoder",
                    config.path_of("model_type"), type));
  } catch (const Error& error) {
    throw error.in(files.describe(kSentenceFile));
  }
}

Task task_of(const JsonReader& config,
             const FileSource& files,
             const Architecture& architecture,
             const ModelConfig& model) {
  if (files.find(kModulesFile)) return task_of_modules(files);
  const std::vector<std::string> names = config.strings_or_empty("architectures");
  if (!names.empty() && !has(architecture.names, names.front())) {
    for (const ClassEnding& one : kClassEndings) {
      if (!names.front().ends_with(one.ending)) continue;
      if (one.task) return *one.task;
      break;
    }
  }
  return model.is_causal ? Task::kGenerate : Task::kEmbed;
}

[[noreturn]] void fail_unknown(const std::string& field, std::string_view name) {
  if (const std::string_view reason = why_absent(name); !reason.empty()) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: '{}' is not supported: {}", field, name, reason));
  }
  std::string known;
  for (const Architecture* architecture : architectures()) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", architecture->names.front());
  }
  throw Error(Code::kUnsupported,
              fmt::format("{}: '{}' is not supported; known are {}", field, name, known));
}

const Architecture& find_text_architecture(const JsonReader& text) {
  const std::string type = text.string_or("model_type", "");
  for (const Architecture* architecture : architectures()) {
    if (architecture->default_text.empty() && has(architecture->model_types, type)) {
      return *architecture;
    }
  }
  fail_unknown(text.path_of("model_type"), type);
}

// Python writes infinity as a bare word, which JSON has not: such a limit of steps stands in
// published configs of Mamba 2. Readers find the word as a string.
std::string quote_infinity(std::string_view text) {
  constexpr std::string_view kWord = "Infinity";
  std::string out;
  bool is_in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_in_string && text.substr(i).starts_with(kWord)) {
      out += fmt::format("\"{}\"", kWord);
      i += kWord.size() - 1;
      continue;
    }
    out += text[i];
    if (is_in_string && text[i] == '\\' && i + 1 < text.size()) {
      out += text[++i];
    } else if (text[i] == '"') {
      is_in_string = !is_in_string;
    }
  }
  return out;
}

// When to stop is said in generation_config.json by newer models, in config.json by older ones.
void read_generation_config(const FileSource& files, ModelConfig& model) {
  const auto text = files.find_text(kGenerationConfigFile);
  if (!text) return;
  try {
    const Json json = parse_json(*text);
    const JsonReader generation(json, "");
    if (generation.has("eos_token_id")) {
      model.eos_token_ids = read_token_ids(generation, "eos_token_id");
    }
  } catch (const Error& error) {
    throw error.in(files.describe(kGenerationConfigFile));
  }
}

// The first quantisers wrote their settings into a file of their own.
struct SettingsFile {
  const char* name;
  const char* method;  // quantization_config.quant_method where it does not say
};
constexpr SettingsFile kSettingsFiles[] = {{"quantize_config.json", "gptq"},
                                           {"quant_config.json", "awq"},
                                           {"hf_quant_config.json", "modelopt"}};

// Some say it in the part of the text model.
void lift_quantization_config(Json& config) {
  static constexpr const char* kKey = "quantization_config";
  const auto text = config.find("text_config");
  if (text == config.end() || !text->is_object()) return;
  const Json inner = text->value(kKey, Json());
  if (inner.is_null()) return;
  const Json outer = config.value(kKey, Json());
  if (!outer.is_null() && outer != inner) {
    throw Error(Code::kInvalidArgument,
                fmt::format("text_config.{0}: differs from {0}; expected one of them, or both "
                            "the same",
                            kKey));
  }
  config[kKey] = inner;
}

// The name of the file that the settings come from; empty where config.json has them, or nobody.
std::string add_quantization_config(const FileSource& files, Json& config) {
  if (!config.is_object()) return "";
  const auto found = config.find("quantization_config");
  if (found != config.end() && !found->is_null()) return "";
  for (const SettingsFile& file : kSettingsFiles) {
    const auto text = files.find_text(file.name);
    if (!text) continue;
    try {
      Json settings = parse_json(*text);
      const JsonReader reader(settings, "");
      settings["quant_method"] = reader.string_or("quant_method", file.method);
      config["quantization_config"] = std::move(settings);
      return file.name;
    } catch (const Error& error) {
      throw error.in(files.describe(file.name));
    }
  }
  return "";
}

const WeightFormat& find_format(const JsonReader& config, const std::string& settings_file) {
  try {
    return find_weight_format(config);
  } catch (const Error& error) {
    if (settings_file.empty()) throw;
    throw error.in("with the settings of " + settings_file);
  }
}

// transformers goes by model_type alone, others by architectures: both have to say the same.
void check_model_type(const JsonReader& config, const Architecture& architecture) {
  const std::string type = config.string_or("model_type", "");
  const std::string_view borrowed = architecture.borrowed_type;
  if (type.empty() || type == borrowed || has(architecture.model_types, type)) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: '{}' does not go with the architecture {}; expected '{}'",
                          config.path_of("model_type"), type, architecture.names.front(),
                          borrowed.empty() ? architecture.model_types.front() : borrowed));
}

// Whether a tensor of the checkpoint has this in its name; nothing where there are no weights.
std::optional<bool> has_tensor_named(const FileSource& files, std::string_view part) {
  for (const char* name : {"model.safetensors.index.json", kGgufIndexFile}) {
    if (const auto index = files.find_text(name))
      return index->find(part) != std::string_view::npos;
  }
  const auto file = files.find("model.safetensors");
  uint64_t length = 0;
  if (!file || file->size() < sizeof length) return std::nullopt;
  std::memcpy(&length, file->data(), sizeof length);
  const auto rest = file->subspan(sizeof length);
  const std::string_view header(reinterpret_cast<const char*>(rest.data()),
                                std::min<uint64_t>(length, rest.size()));
  return header.find(part) != std::string_view::npos;
}

// Of the two places where a multimodal checkpoint can say it. Classes that tie unless told
// otherwise are used for files that are not tied and don't say so, and some files say both.
bool says_once_whether_tied(const JsonReader& config, const Json& fallback) {
  static constexpr const char* kKey = "tie_word_embeddings";
  const Json text =
      config.has("text_config") ? config.object("text_config").json() : Json::object();
  if (config.has(kKey) && text.contains(kKey)) return config.json().at(kKey) == text.at(kKey);
  return config.has(kKey) || text.contains(kKey) || !fallback.value(kKey, false);
}

// Of several parts that with the text model is what the file says; the names stay the file's.
void take_part(const Architecture& architecture, const JsonReader& config, Json& json) {
  if (architecture.part.empty() || !config.has(architecture.part)) return;
  Json part = config.object(architecture.part).json();
  json.erase(std::string(architecture.part));
  for (const auto& [name, value] : json.items()) {
    if (!part.contains(name) || name == "architectures" || name == "model_type") part[name] = value;
  }
  json = std::move(part);
}

// Some files say a part of text_config a second time.
void drop_repeated_text_fields(const Architecture& architecture, Json& config) {
  const Json text = config.value("text_config", Json());
  if (!text.is_object()) return;
  const Architecture* const ignored = architecture.repeats_text
                                          ? &find_text_architecture(JsonReader(text, "text_config"))
                                          : nullptr;
  std::erase_if(config.get_ref<Json::object_t&>(), [&](const auto& field) {
    const auto& [name, value] = field;
    const KnownField* const known = find_field(architecture.fields, generic_fields(), name);
    const auto found = text.find(name);
    if (found != text.end() && *found == value)
      return known == nullptr || known->use == FieldUse::kHarmlessIf;
    return known == nullptr && ignored != nullptr &&
           find_field(ignored->fields, {}, name) != nullptr;
  });
}

// Old files have the text model's fields beside their own.
void nest_text_fields(const Architecture& architecture, Json& config) {
  if (architecture.default_text.empty()) return;
  if (config.contains("text_config")) return drop_repeated_text_fields(architecture, config);
  if (!config.contains("num_hidden_layers")) return;
  Json text = Json::object();
  for (const auto& [name, value] : config.items()) {
    if (find_field(architecture.fields, generic_fields(), name) == nullptr) text[name] = value;
  }
  for (const auto& [name, value] : text.items()) config.erase(name);
  config["text_config"] = std::move(text);
}

// Any decoder of `transformers` sees the tokens behind a token too where the field says so, its
// windows reaching as far to both sides.
void read_causality(const JsonReader& config, ModelConfig& model) {
  if (!model.is_causal || config.boolean_or("is_causal", true)) return;
  for (LayerPlan& layer : model.layers) {
    if (!layer.has_attention || layer.has_state || layer.attention_chunk > 0) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}: false is not supported for layers that have a state or see "
                              "tokens in chunks",
                              config.path_of("is_causal")));
    }
    if (layer.sliding_window > 0) ++layer.sliding_window;
  }
  model.is_causal = false;
}

ModelConfig read_family(const Architecture& family, const JsonReader& config) {
  ModelConfig out = family.read_config(config);
  read_causality(config, out);
  return out;
}

// The text model of a multimodal one reads its own part of config.json.
void read_text_model(const JsonReader& config, const FileSource& files, LoadedConfig& loaded) {
  const Architecture& outer = *loaded.architecture;
  const Json fallback = parse_json(outer.default_text);
  Json json = read_text_config(config, fallback, outer.default_text_fills_gaps);
  if (outer.has_own_head) {
    json["tie_word_embeddings"] = false;
  } else if (!says_once_whether_tied(config, fallback)) {
    const bool says =
        json.value("tie_word_embeddings", fallback.value("tie_word_embeddings", false));
    json["tie_word_embeddings"] = !has_tensor_named(files, "lm_head.weight").value_or(!says);
  }
  const JsonReader text(json, "text_config");
  loaded.text = &find_text_architecture(text);
  rename_aliases(loaded.text->aliases, json);
  refuse_unknown_fields(text, loaded.text->fields, generic_fields(),
                        fmt::format("the text model of {}", outer.names.front()));
  loaded.config = read_family(*loaded.text, text);
}

// What config.json does not say.
void settle_by_tensors(const FileSource& files, LoadedConfig& model) {
  model.has_separate_experts = !model.text->tensors_of_separate_experts.empty() &&
                               has_tensor_named(files, ".experts.0.").value_or(false);
  if (!model.text->may_lack_choice_bias || !model.config.experts.has_choice_bias) return;
  for (const TensorSpec& spec : model.tensors()) {
    if (spec.role != Role::kChoiceBias) continue;
    const std::string_view ending = spec.name.substr(spec.name.find('}') + 1);
    model.config.experts.has_choice_bias = has_tensor_named(files, ending).value_or(true);
  }
}

// So that no sum of bytes that is planned with overflows, and nobody waits for what can't be.
void check_total_size(const LoadedConfig& model) {
  const ModelConfig& config = model.config;
  const auto refuse = [&](double count, std::string_view what, double limit) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{} layers, a hidden size of {}, an intermediate size of {}, {} KV "
                            "heads of {}, {} tokens in the vocabulary and {} positions make {:.3g} "
                            "{}; expected at most {:.3g}",
                            config.num_layers, config.hidden_size, config.intermediate_size,
                            cached_heads(config, 1), cached_head_dim(config), config.vocab_size,
                            config.max_positions, count, what, limit));
  };
  const double num_parameters = count_parameters(model);
  if (num_parameters > kMaxParameters) refuse(num_parameters, "parameters", kMaxParameters);
  const double num_cached =
      (has_latents(config) ? 1.0 : 2.0) * count_layers(config, &LayerPlan::has_attention) *
      cached_heads(config, 1) * cached_head_dim(config) * static_cast<double>(config.max_positions);
  if (num_cached > kMaxCachedNumbers) {
    refuse(num_cached, "numbers in the KV cache of one sequence", kMaxCachedNumbers);
  }
}

// A text's vector has no head of the family's; scores have one.
void settle_head(const JsonReader& config, LoadedConfig& model) {
  model.config.gives_vectors = true;
  model.config.tied_embeddings = true;  // there is no head that draws tokens
  if (model.task == Task::kEmbed) return;
  if (!config.strings_or_empty("architectures").empty()) {
    model.config.architecture = config.strings_or_empty("architectures").front();
  }
  const bool is_known = std::ranges::any_of(
      heads_of(model), [&](const HeadSpec& head) { return head.task == model.task; });
  if (is_known) return;
  throw Error(Code::kUnsupported,
              fmt::format("{}: '{}' is not supported, of this family is only what draws tokens or "
                          "gives vectors",
                          config.path_of("architectures"), model.config.architecture));
}

}  // namespace

std::span<const HeadSpec> heads_of(const LoadedConfig& model) {
  static constexpr HeadLayer kScore[] = {{.weight = "score.weight", .bias = "score.bias"}};
  static constexpr HeadLayer kClassifier[] = {
      {.weight = "classifier.weight", .bias = "classifier.bias"}};
  static constexpr HeadSpec kDecoderHeads[] = {
      {Task::kClassify, HeadInput::kLast, kScore},
      {Task::kClassifyTokens, HeadInput::kEach, kScore},
      {Task::kClassifyTokens, HeadInput::kEach, kClassifier},  // of older classes, as GPT-2's
  };
  if (!model.text->heads.empty()) return model.text->heads;
  return kDecoderHeads;
}

void make_embedder(LoadedConfig& model) {
  model.task = Task::kEmbed;
  model.config.gives_vectors = true;
  model.config.tied_embeddings = true;
}

const Architecture& find_architecture(const JsonReader& config) {
  const std::vector<std::string> names = config.strings_or_empty("architectures");
  const std::string model_type = config.string_or("model_type", "");
  for (const std::string& name : names) {
    for (const Architecture* architecture : architectures()) {
      const std::string_view other = architecture->computed_by;
      if (other.empty() || !has(architecture->model_types, model_type)) continue;
      if (name == other || stem_of(name) == stem_of(other)) return *architecture;
    }
    for (const Architecture* architecture : architectures()) {
      if (has(architecture->names, name)) return *architecture;
    }
    for (const Architecture* architecture : architectures()) {
      const auto is_stem = [&](std::string_view other) { return stem_of(other) == stem_of(name); };
      if (std::ranges::any_of(architecture->names, is_stem)) return *architecture;
    }
  }
  if (!names.empty()) fail_unknown(config.path_of("architectures"), names.front());
  for (const Architecture* architecture : architectures()) {
    if (has(architecture->model_types, model_type)) return *architecture;
  }
  fail_unknown(config.path_of("model_type"), model_type);
}

// A folder of sentence-transformers whose first module is no model that lies beside it.
static void refuse_other_modules(const FileSource& files) {
  if (files.find(kConfigFile) || !files.find(kModulesFile)) return;
  const Json list = parse_json(files.require_text(kModulesFile));
  if (!list.is_array() || list.empty() || !list[0].is_object()) return;
  const JsonReader first(list[0], "0");
  throw Error(Code::kUnsupported,
              fmt::format("{}: {}: '{}' in '{}' is not supported; known is Transformer in the "
                          "folder itself, with its config.json",
                          files.describe(kModulesFile), first.path_of("type"),
                          first.string_or("type", ""), first.string_or("path", "")));
}

LoadedConfig load_model_config(const FileSource& files) {
  refuse_other_modules(files);
  const std::string_view text = files.require_text(kConfigFile);
  LoadedConfig loaded;
  try {
    loaded.json = parse_json(quote_infinity(text));
    const JsonReader config(loaded.json, "");
    loaded.architecture = &find_architecture(config);
    check_model_type(config, *loaded.architecture);
    take_part(*loaded.architecture, config, loaded.json);
    rename_aliases(loaded.architecture->aliases, loaded.json);
    nest_text_fields(*loaded.architecture, loaded.json);
    lift_quantization_config(loaded.json);
    const std::string settings_file = add_quantization_config(files, loaded.json);
    loaded.weight_format = &find_format(config, settings_file);
    refuse_unknown_fields(config, loaded.architecture->fields, generic_fields(),
                          loaded.architecture->names.front());
    if (loaded.architecture->default_text.empty()) {
      loaded.text = loaded.architecture;
      loaded.config = read_family(*loaded.text, config);
    } else {
      read_text_model(config, files, loaded);
    }
    settle_by_tensors(files, loaded);
    loaded.config.architecture = loaded.architecture->names.front();
    loaded.ties_head = loaded.config.tied_embeddings;
    loaded.task = task_of(config, files, *loaded.architecture, loaded.config);
    if (loaded.task != Task::kGenerate) settle_head(config, loaded);
    check_total_size(loaded);
  } catch (const Error& error) {
    throw error.in(files.describe(kConfigFile));
  }
  read_generation_config(files, loaded.config);
  return loaded;
}

}  // namespace tgi
