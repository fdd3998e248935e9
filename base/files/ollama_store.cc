#include "base/files/ollama_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/files/regular_file.h"
#include "base/json.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kFolders = {"manifests", "manifests-v2", "manifest-v2"};
constexpr std::string_view kLayer = "application/vnd.ollama.image.";

// What says how a model is computed, which is decided otherwise here, or nothing at all any more.
// `value`: the one that means off; null: any.
struct Unused {
  std::string_view name;
  std::optional<double> off{};
};
constexpr std::array kUnused = {
    Unused{"num_keep"},    Unused{"num_batch"},      Unused{"num_gpu"},
    Unused{"main_gpu"},    Unused{"num_thread"},     Unused{"num_gqa"},
    Unused{"numa"},        Unused{"low_vram"},       Unused{"f16_kv"},
    Unused{"use_mmap"},    Unused{"use_mlock"},      Unused{"vocab_only"},
    Unused{"logits_all"},  Unused{"embedding_only"}, Unused{"penalize_newline"},
    Unused{"mirostat", 0}, Unused{"mirostat_tau"},   Unused{"mirostat_eta"},
    Unused{"tfs_z", 1},
};

// HOST, NAMESPACE, MODEL and TAG. Empty: no such path.
std::vector<std::string> parts_of(const fs::path& path) {
  std::vector<std::string> parts(path.begin(), path.end());
  constexpr size_t kParts = 4;
  if (parts.size() < kParts + 2) return {};
  const std::string& above = parts[parts.size() - kParts - 1];
  if (std::ranges::find(kFolders, above) == kFolders.end()) return {};
  return {parts.end() - kParts, parts.end()};
}

std::string text_of(const Json& json, const char* field) {
  if (!json.is_object() || !json.contains(field) || !json[field].is_string()) return "";
  return json[field].get<std::string>();
}

// TOP of TOP/manifests/HOST/NAMESPACE/MODEL/TAG, and the layers.
struct Manifest {
  fs::path top;
  Json layers;
};

Manifest read_manifest(const std::string& path) {
  const Json json = parse_json(read_regular_file(path));
  if (!json.is_object() || !json.contains("layers") || !json["layers"].is_array()) {
    throw Error(Code::kInvalidArgument, "expected a manifest of ollama, with \"layers\"");
  }
  fs::path top = path;
  for (int i = 0; i < 5; ++i) top = top.parent_path();
  return {.top = std::move(top), .layers = json["layers"]};
}

// Without the application's part: "model", "system". Of other programs' layers all of it.
std::string kind_of(const Json& layer) {
  const std::string type = text_of(layer, "mediaType");
  return type.starts_with(kLayer) ? type.substr(kLayer.size()) : type;
}

std::string blob_of(const Manifest& manifest, const Json& layer) {
  std::string digest = text_of(layer, "digest");
  if (!digest.starts_with("sha256:") || digest.find_first_of("/\\") != std::string::npos) {
    throw Error(Code::kInvalidArgument,
                fmt::format("layer {}: expected a digest \"sha256:...\"", kind_of(layer)));
  }
  const fs::path of_2023 = manifest.top / "blobs" / digest;
  digest.replace(digest.find(':'), 1, "-");
  fs::path path = manifest.top / "blobs" / digest;
  std::error_code error;
  if (!fs::exists(path, error) && fs::exists(of_2023, error)) path = of_2023;
  return path.string();
}

bool is_unused(const std::string& name, const Json& value) {
  const auto row = std::ranges::find(kUnused, name, &Unused::name);
  if (row == kUnused.end()) return false;
  return !row->off || (value.is_number() && value.get<double>() == *row->off);
}

void read_parameters(const std::string& text, PresetParameters& to) {
  const Json json = parse_json(text);
  if (!json.is_object()) throw Error(Code::kInvalidArgument, "expected an object");
  for (const auto& [name, value] : json.items()) {
    if (is_unused(name, value)) continue;
    const bool is_list = value.is_array();
    for (const Json& each : is_list ? value : Json::array({value})) {
      set_parameter(to, name, each.is_string() ? each.get<std::string>() : each.dump());
    }
  }
}

void read_messages(const std::string& text, std::vector<PresetMessage>& to) {
  const Json json = parse_json(text);
  if (!json.is_array()) throw Error(Code::kInvalidArgument, "expected an array");
  for (const Json& each : json) {
    check_message_role(text_of(each, "role"));
    to.push_back({.role = text_of(each, "role"), .content = text_of(each, "content")});
  }
}

void read_layer(const std::string& kind, const std::string& blob, Preset& to) {
  if (kind == "model") {
    if (!to.from.empty()) {
      throw Error(Code::kUnsupported, "a model in several files can't be loaded");
    }
    to.from = blob;
  } else if (kind == "adapter") {
    if (!to.adapter.empty()) {
      throw Error(Code::kUnsupported, "a model with several adapters can't be loaded");
    }
    to.adapter = blob;
  } else if (kind == "projector") {
    to.not_used.push_back("projector (it is about images, and only text is read)");
  } else if (kind == "system") {
    to.system = read_regular_file(blob);
  } else if (kind == "params") {
    read_parameters(read_regular_file(blob), to.parameters);
  } else if (kind == "messages") {
    read_messages(read_regular_file(blob), to.messages);
  } else if (kind == "license") {
    to.licenses.push_back(read_regular_file(blob));
  } else if (kind != "template") {
    throw Error(Code::kUnsupported,
                "a layer of a type that this build does not know; without it the model may be "
                "another one");
  }
}

}  // namespace

bool is_ollama_manifest(const std::string& path) {
  std::error_code error;
  return !parts_of(path).empty() && fs::is_regular_file(path, error);
}

std::string ollama_name(const std::string& manifest_path) {
  const std::vector<std::string> parts = parts_of(manifest_path);
  if (parts.empty()) return "";
  const bool is_own = parts[0] == "registry.ollama.ai" || parts[0] == "ollama.com";
  std::string name = is_own ? "" : parts[0] + "/";
  if (!is_own || parts[1] != "library") name += parts[1] + "/";
  return fmt::format("{}{}:{}", name, parts[2], parts[3]);
}

Preset read_ollama_model(const std::string& manifest_path) {
  Preset out{.from = "", .parameters = {}};
  const std::string place = fmt::format("{} of ollama", ollama_name(manifest_path));
  try {
    const Manifest manifest = read_manifest(manifest_path);
    for (const bool is_weights : {true, false}) {
      for (const Json& layer : manifest.layers) {
        const std::string kind = kind_of(layer);
        if ((kind == "model") != is_weights) continue;
        try {
          read_layer(kind, blob_of(manifest, layer), out);
        } catch (const Error& error) {
          throw error.in(kind.empty() ? "a layer without a mediaType" : kind);
        }
      }
    }
  } catch (const Error& error) {
    if (out.from.empty()) throw error.in(place);
    throw Error(error.code(), fmt::format("{}: {}; {} is the model without its defaults", place,
                                          error.what(), out.from));
  }
  if (!out.from.empty()) return out;
  throw Error(Code::kInvalidArgument, place + ": expected a layer with the model, there is none");
}

std::optional<OllamaFiles> find_ollama_files(const std::string& manifest_path) {
  static constexpr std::array<std::string_view, 3> kPlain = {"model", "template", "license"};
  try {
    OllamaFiles out;
    const Manifest manifest = read_manifest(manifest_path);
    for (const Json& layer : manifest.layers) {
      const std::string kind = kind_of(layer);
      const bool is_weights = kind == "model";
      if (is_weights && !out.weights.empty()) return std::nullopt;
      if (is_weights) out.weights = blob_of(manifest, layer);
      out.has_defaults = out.has_defaults || std::ranges::find(kPlain, kind) == kPlain.end();
    }
    return out.weights.empty() ? std::nullopt : std::optional(out);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace tgi
