// Models as ollama keeps them: manifests/HOST/NAMESPACE/MODEL/TAG is a JSON file that names the
// layers of a model, blobs/sha256-HEX beside `manifests` holds each. One with more layers than the
// weights is a preset (base/files/preset_files.h), which is read where it lies. Source: ollama's
// server/layer.go, server/images.go and types/model/name.go.
#pragma once

#include <optional>
#include <string>

#include "base/files/preset.h"

namespace tgi {

// A regular file in that place below a folder of manifests.
bool is_ollama_manifest(const std::string& path);

// As ollama writes it: "llama3.2:1b", "someone/model:tag", "hf.co/ORG/NAME:Q4_K_M". Empty: no such
// path.
std::string ollama_name(const std::string& manifest_path);

// The model's one file of weights, its adapter, system prompt, parameters, messages and licences.
// Its template is in Go's notation: not read, that of the weights' own file holds. Throws kNotFound
// for a layer whose file is not there; kInvalidArgument for what is no manifest, and for parameters
// that set_parameter refuses, with the file of the weights, which can be loaded without them;
// kUnsupported for several adapters, several files of weights, and naming a layer of another kind.
Preset read_ollama_model(const std::string& manifest_path);

struct OllamaFiles {
  std::string weights;        // may not be there
  bool has_defaults = false;  // read_ollama_model says more than the weights
};

// Without reading the layers. Nothing for what can't be read, and for weights in several files.
std::optional<OllamaFiles> find_ollama_files(const std::string& manifest_path);

}  // namespace tgi
