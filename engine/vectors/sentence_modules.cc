#include "engine/vectors/sentence_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/json.h"
#include "base/known_fields.h"

namespace tgi {
namespace {

struct ModeName {
  PoolingMode mode;
  std::string_view field;  // of the older form, a switch
  std::string_view name;   // of the newer
};
constexpr ModeName kModes[] = {
    {PoolingMode::kCls, "pooling_mode_cls_token", "cls"},
    {PoolingMode::kMax, "pooling_mode_max_tokens", "max"},
    {PoolingMode::kMean, "pooling_mode_mean_tokens", "mean"},
    {PoolingMode::kMeanSqrtLen, "pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
    {PoolingMode::kWeightedMean, "pooling_mode_weightedmean_tokens", "weightedmean"},
    {PoolingMode::kLastToken, "pooling_mode_lasttoken", "lasttoken"},
};

constexpr auto kPoolingFields = std::to_array<KnownField>({
    read("word_embedding_dimension"),
    read("embedding_dimension"),
    read_or_null("pooling_mode"),
    read("pooling_mode_cls_token"),
    read("pooling_mode_max_tokens"),
    read("pooling_mode_mean_tokens"),
    read("pooling_mode_mean_sqrt_len_tokens"),
    read("pooling_mode_weightedmean_tokens"),
    read("pooling_mode_lasttoken"),
    harmless_if("include_prompt", "[true]", "what stands before a text is pooled with it"),
});
constexpr auto kDenseFields = std::to_array<KnownField>({
    read("in_features"),
    read("out_features"),
    read("bias"),
    read("activation_function"),
    harmless_if("module_input_name", R"(["sentence_embedding"])", "it reads what was pooled"),
    harmless_if("module_output_name", R"(["sentence_embedding"])", "it gives the text's vector"),
});
constexpr auto kLogitFields = std::to_array<KnownField>({
    read("true_token_id"),
    read_or_null("false_token_id"),
    harmless_if("module_input_name", R"(["causal_logits"])", "it reads the last token's logits"),
});
constexpr auto kMessageFields = std::to_array<KnownField>({
    read("format"),
    harmless("method", "it is the forward pass"),
    harmless("method_output_name", "the modules behind it say what is read"),
});
constexpr auto kTransformerFields = std::to_array<KnownField>({
    read_or_null("max_seq_length"),
    harmless_if("do_lower_case", "[false]", "texts are taken as they are"),
    harmless("transformer_task", "the class of config.json says it"),
    read_or_null("modality_config"),
    read_or_null("processing_kwargs"),
    harmless("module_output_name", "the modules behind it say what is read"),
    harmless("unpad_inputs", "sequences are never padded"),
    harmless_if("query_length", "[]", "queries are cut as other texts are"),
    harmless_if("document_length", "[]", "documents are cut as other texts are"),
    harmless_if("query_expansion", "[]", "nothing is put behind a query"),
    harmless("*_args", "are objects of Python"),
    harmless("model_args", "are objects of Python"),
    harmless("tokenizer_args", "are objects of Python"),
    harmless("config_args", "are objects of Python"),
    harmless("tokenizer_name_or_path", "the tokenizer is the one beside the weights"),
});

constexpr auto kSentenceFields = std::to_array<KnownField>({
    read_or_null("prompts"),
    read_or_null("default_prompt_name"),
    read_or_null("truncate_dim"),
    read_or_null("activation_fn"),
    harmless("__version__", "says what wrote the file"),
    harmless("model_type", "the modules say it"),
    harmless("similarity_fn_name", "is about vectors that are compared elsewhere"),
    harmless("num_labels", "the class of config.json says it"),
    harmless("max_length", "the tokenizer says it"),
});

Json read_object(const FileSource& files, const std::string& name) {
  try {
    Json json = parse_json(files.require_text(name));
    if (!json.is_object()) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("expected an object, got {}", json.type_name()));
    }
    return json;
  } catch (const Error& error) {
    if (error.code() == Code::kNotFound) throw;
    throw error.in(files.describe(name));
  }
}

template <typename Read>
auto with_object(const FileSource& files, const std::string& name, const Read& read_it) {
  const Json json = read_object(files, name);
  try {
    return read_it(JsonReader(json, ""));
  } catch (const Error& error) {
    throw error.in(files.describe(name));
  }
}

// "mean", "cls+mean" or a list of them.
std::vector<std::string> mode_names(const Json& value) {
  if (value.is_string()) {
    std::vector<std::string> out{""};
    for (const char c : value.get<std::string>()) {
      if (c == '+') {
        out.emplace_back();
      } else {
        out.back() += c;
      }
    }
    return out;
  }
  std::vector<std::string> out;
  if (value.is_array()) {
    for (const Json& item : value) out.push_back(item.is_string() ? item.get<std::string>() : "");
  }
  return out;
}

std::vector<PoolingMode> read_pooling(const JsonReader& config, int64_t width) {
  refuse_unknown_fields(config, kPoolingFields, {}, "sentence-transformers' Pooling",
                        "how hidden states are pooled");
  const char* const size =
      config.has("embedding_dimension") ? "embedding_dimension" : "word_embedding_dimension";
  const int64_t given = config.integer_or(size, width);
  if (given != width) {
    throw Error(Code::kInvalidArgument, fmt::format("{}: expected {}, the hidden size, got {}",
                                                    config.path_of(size), width, given));
  }
  std::vector<PoolingMode> out;
  if (config.has("pooling_mode")) {
    for (const std::string& name : mode_names(config.json().at("pooling_mode"))) {
      const auto mode = pooling_mode_from_name(name);
      if (!mode) {
        throw Error(Code::kUnsupported,
                    fmt::format("{}: '{}' is not supported; known are {}",
                                config.path_of("pooling_mode"), name, pooling_mode_names()));
      }
      out.push_back(*mode);
    }
  } else {
    const bool is_said =
        std::ranges::any_of(kModes, [&](const ModeName& row) { return config.has(row.field); });
    for (const ModeName& row : kModes) {
      if (config.boolean_or(row.field, !is_said && row.mode == PoolingMode::kMean)) {
        out.push_back(row.mode);
      }
    }
  }
  if (out.empty()) throw Error(Code::kInvalidArgument, "no way of pooling is switched on");
  return out;
}

HeadActivation parse_class(const std::string& name, const std::string& field) {
  const std::string last = class_name(name);
  if (last == "Identity") return HeadActivation::kNone;
  if (last == "Tanh") return HeadActivation::kTanh;
  if (last == "GELU") return HeadActivation::kGelu;
  if (last == "ReLU") return HeadActivation::kRelu;
  throw Error(Code::kUnsupported,
              fmt::format("{}: '{}' is not supported; known are torch.nn's Identity, Tanh, GELU, "
                          "ReLU",
                          field, name));
}

DenseStep read_dense(const FileSource& files, const std::string& folder, int64_t width) {
  bool has_bias = true;
  DenseStep out = with_object(files, folder + "/config.json", [&](const JsonReader& config) {
    refuse_unknown_fields(config, kDenseFields, {}, "sentence-transformers' Dense",
                          "the vector of a text");
    DenseStep step;
    step.cols = config.integer_or("in_features", width);
    if (step.cols != width) {
      throw Error(
          Code::kInvalidArgument,
          fmt::format("{}: expected {}, got {}", config.path_of("in_features"), width, step.cols));
    }
    step.rows = config.integer_or("out_features", 0);
    if (step.rows < 1 || step.rows > 1 << 20) {
      throw Error(Code::kInvalidArgument, fmt::format("{}: expected 1 to 1048576, got {}",
                                                      config.path_of("out_features"), step.rows));
    }
    has_bias = config.boolean_or("bias", true);
    step.activation = parse_class(config.string_or("activation_function", "Tanh"),
                                  config.path_of("activation_function"));
    return step;
  });
  const std::string weights = folder + "/model.safetensors";
  if (!files.find(weights) && files.find(folder + "/pytorch_model.bin")) {
    throw Error(Code::kUnsupported,
                fmt::format("{}: of a model whose own weights are safetensors a module's are "
                            "expected to be too; {} is not there",
                            files.describe(folder + "/pytorch_model.bin"), weights));
  }
  const auto checkpoint = open_safetensors(files, weights);
  const std::array<int64_t, 2> shape = {out.rows, out.cols};
  out.weight = read_tensor(*checkpoint, checkpoint->find("linear.weight"), "linear.weight", shape);
  if (has_bias) {
    const std::array<int64_t, 1> length = {out.rows};
    out.bias = read_tensor(*checkpoint, checkpoint->find("linear.bias"), "linear.bias", length);
  }
  return out;
}

LogitScore read_logit_score(const FileSource& files, const std::string& folder, int64_t width) {
  LogitScore score = with_object(files, folder + "/config.json", [](const JsonReader& config) {
    refuse_unknown_fields(config, kLogitFields, {}, "sentence-transformers' LogitScore",
                          "the score of a pair");
    const auto token = [&](const char* name) {
      const int64_t id = config.integer_or(name, -1);
      if (id < 0 || id > INT32_MAX) {
        throw Error(Code::kInvalidArgument, fmt::format("{}: expected the id of a token, got {}",
                                                        config.path_of(name), id));
      }
      return static_cast<int32_t>(id);
    };
    LogitScore out{.true_token = token("true_token_id"), .false_token = {}};
    if (config.has("false_token_id")) out.false_token = token("false_token_id");
    return out;
  });
  const std::string weights = folder + "/model.safetensors";
  if (!files.find(weights)) return score;
  DenseStep rows;
  rows.rows = score.false_token ? 2 : 1;
  rows.cols = width;
  const auto checkpoint = open_safetensors(files, weights);
  const std::array<int64_t, 2> shape = {rows.rows, rows.cols};
  rows.weight = read_tensor(*checkpoint, checkpoint->find("linear.weight"), "linear.weight", shape);
  score.rows = std::move(rows);
  return score;
}

// What `apply_chat_template` is called with.
void read_template_call(const JsonReader& config, TextMessages& out) {
  for (const auto& [name, value] : config.json().items()) {
    if (name == "add_generation_prompt") {
      out.add_generation_prompt = config.boolean_or("add_generation_prompt", false);
    } else if (name == "restore_suffix") {
      if (!config.boolean_or("restore_suffix", true)) {
        throw Error(Code::kUnsupported,
                    fmt::format("{}: false is not supported; what the template writes behind a "
                                "text that is cut stays",
                                config.path_of(name)));
      }
    } else {
      out.variables[name] = value;
    }
  }
}

std::optional<TextMessages> read_messages(const JsonReader& config) {
  const bool has_messages =
      config.has("modality_config") && config.object("modality_config").has("message");
  TextMessages out;
  if (config.has("processing_kwargs")) {
    const JsonReader calls = config.object("processing_kwargs");
    for (const auto& [name, value] : calls.json().items()) {
      if (name == "chat_template") {
        if (!value.is_null()) read_template_call(calls.object("chat_template"), out);
      } else if (!value.is_null() && !value.empty()) {
        throw Error(Code::kUnsupported, fmt::format("{}: is not supported; known is chat_template",
                                                    calls.path_of(name)));
      }
    }
  }
  if (!has_messages) return std::nullopt;
  const JsonReader message = config.object("modality_config").object("message");
  refuse_unknown_fields(message, kMessageFields, {}, "sentence-transformers' Transformer",
                        "how texts are read");
  const std::string format = message.string_or("format", "auto");
  if (format != "auto" && format != "flat" && format != "structured") {
    throw Error(Code::kUnsupported,
                fmt::format("{}: '{}' is not supported; known are flat, structured, auto",
                            message.path_of("format"), format));
  }
  if (format != "auto") out.has_parts = format == "structured";
  return out;
}

void read_modules(const FileSource& files, int32_t hidden_size, SentenceModules& out) {
  const std::string file = files.describe(kModulesFile);
  const Json list = parse_json(files.require_text(kModulesFile));
  if (!list.is_array()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected a list of modules, got {}", file, list.type_name()));
  }
  int64_t width = hidden_size;
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonReader module(list[i], fmt::format("{}", i));
    const std::string type = module.string_or("type", "");
    const std::string path = module.string_or("path", "");
    const std::string last = class_name(type);
    if (last == "Transformer") {
      if (i == 0 && path.empty()) continue;
      throw Error(Code::kUnsupported,
                  fmt::format("{}: {}: the model is expected first, and in the folder itself", file,
                              module.path_of("path")));
    }
    if (last == "Pooling") {
      out.modes = with_object(files, path + "/config.json", [&](const JsonReader& config) {
        return read_pooling(config, hidden_size);
      });
      width = hidden_size * static_cast<int64_t>(out.modes.size());
    } else if (last == "Dense") {
      out.dense.push_back(read_dense(files, path, width));
      width = out.dense.back().rows;
    } else if (last == "Normalize") {
      // A norm before a dense layer would be another thing.
      if (i + 1 != list.size()) {
        throw Error(Code::kUnsupported,
                    fmt::format("{}: {}: Normalize is supported at the end only", file,
                                module.path_of("type")));
      }
      out.normalises = true;
    } else if (last == "LogitScore") {
      out.logit_score = read_logit_score(files, path, hidden_size);
    } else if (last != "Dropout") {
      throw Error(Code::kUnsupported,
                  fmt::format("{}: {}: '{}' is not supported; known are Transformer, Pooling, "
                              "Dense, Normalize, Dropout, LogitScore",
                              file, module.path_of("type"), type));
    }
  }
}

void read_prompts(const FileSource& files, SentenceModules& out) {
  if (!files.find(kSentenceFile)) return;
  with_object(files, kSentenceFile, [&](const JsonReader& config) {
    refuse_unknown_fields(config, kSentenceFields, {}, "sentence-transformers",
                          "how texts become vectors");
    if (config.has("prompts")) {
      const Json& prompts = config.object("prompts").json();
      for (const auto& [name, text] : prompts.items()) {
        if (!text.is_string()) {
          throw Error(Code::kInvalidArgument,
                      fmt::format("prompts.{}: expected a string, got {}", name, text.type_name()));
        }
        out.prompts[name] = text.get<std::string>();
      }
    }
    out.activation = config.optional_string("activation_fn");
    if (config.has("truncate_dim")) {
      out.kept_dimensions = config.integer_or("truncate_dim", 0);
      if (*out.kept_dimensions < 1) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("truncate_dim: expected 1 or more, got {}", *out.kept_dimensions));
      }
    }
    out.default_prompt = config.optional_string("default_prompt_name");
    if (out.default_prompt && !out.prompts.contains(*out.default_prompt)) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("default_prompt_name: there is no prompt '{}'", *out.default_prompt));
    }
    return true;
  });
}

constexpr const char* kTokenizerFile = "tokenizer_config.json";

void read_cut_side(const JsonReader& config, SentenceModules& out) {
  const auto side = config.optional_string("truncation_side");
  if (!side) return;
  out.cut_side = cut_side_from_name(*side);
  if (out.cut_side) return;
  throw Error(Code::kInvalidArgument, fmt::format("{}: expected left or right, got \"{}\"",
                                                  config.path_of("truncation_side"), *side));
}

// Of which tokenizers of transformers hand over types by themselves the class tells; a file that
// names what they hand over tells it better.
void read_tokenizer(const FileSource& files, SentenceModules& out) {
  if (!files.find(kTokenizerFile)) return;
  with_object(files, kTokenizerFile, [&](const JsonReader& config) {
    read_cut_side(config, out);
    constexpr const char* kNames = "model_input_names";
    if (config.has(kNames)) {
      const std::vector<std::string> names = config.strings_or_empty(kNames);
      out.gives_token_types = std::ranges::find(names, "token_type_ids") != names.end();
    } else {
      out.gives_token_types = config.string_or("tokenizer_class", "") != "TokenizersBackend";
    }
    return true;
  });
}

// The file of the Transformer has had a name for each kind of model; the first that says something
// is read.
constexpr const char* kTransformerFiles[] = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
};

// Where the modules don't say it, the tokenizer does.
void read_length(const FileSource& files, SentenceModules& out) {
  for (const char* name : kTransformerFiles) {
    if (!files.find(name) || read_object(files, name).empty()) continue;
    with_object(files, name, [&](const JsonReader& config) {
      refuse_unknown_fields(config, kTransformerFields, {}, "sentence-transformers' Transformer",
                            "how texts are read");
      out.messages = read_messages(config);
      if (config.has("max_seq_length")) out.max_tokens = config.integer_or("max_seq_length", 0);
      return true;
    });
    break;
  }
  if (out.max_tokens || !files.find(kTokenizerFile)) return;
  with_object(files, kTokenizerFile, [&](const JsonReader& config) {
    // A number beyond all bounds stands for none.
    const double length = config.optional_number("model_max_length").value_or(0.0);
    if (length >= 1.0 && length <= INT32_MAX) out.max_tokens = static_cast<int64_t>(length);
    return true;
  });
}

}  // namespace

std::string class_name(std::string_view path) {
  return std::string(path.substr(path.rfind('.') + 1));
}

std::optional<PoolingMode> pooling_mode_from_name(std::string_view name) {
  for (const ModeName& row : kModes) {
    if (row.name == name) return row.mode;
  }
  return std::nullopt;
}

std::string pooling_mode_names() {
  std::string out;
  for (const ModeName& row : kModes) out += fmt::format("{}{}", out.empty() ? "" : ", ", row.name);
  return out;
}

SentenceModules read_sentence_modules(const FileSource& files, int32_t hidden_size) {
  SentenceModules out;
  if (files.find(kModulesFile)) read_modules(files, hidden_size, out);
  read_prompts(files, out);
  read_length(files, out);
  read_tokenizer(files, out);
  return out;
}

}  // namespace tgi
