// A model as the user names it, as the daemon needs it: the daemon has another working folder than
// the one who asks.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace tgi {

// "demo" as it is, anything else as an absolute path.
std::string absolute_model(const std::string& model);

// The path of a preset by its name, where no folder and no GGUF file has that name.
std::optional<std::string> preset_of(const std::string& model);

struct ResolveOptions {
  std::string revision{};              // of a model of the hub; empty: main, or the one in its name
  std::string cache_dir{};             // empty: huggingface_hub's
  std::optional<std::string> token{};  // to the hub, in place of the user's own
  bool offline = false;                // never ask anybody
  bool needs_weights = true;           // false: a folder's torch checkpoint is left as it is
  bool must_be_model = false;  // a folder without a model is refused, not left to the daemon
  int cancel_fd = -1;
  // Gets the lines about a download (optional); without it they go to stderr, on a terminal with a
  // display.
  std::function<void(const std::string&)> on_line{};
};

// What the daemon is told: "demo", or the absolute path of a folder: of its conversion, when it has
// weights of torch only (cmd/download/converted.h); of a preset the path of its file. A folder of
// that name goes before a preset, and both before a model of the hub, an s3:// or https:// address;
// those are downloaded when they are not in the cache as a whole, and in that case only is anybody
// asked. Throws what fetch_model throws.
std::string resolve_model(const std::string& model, const ResolveOptions& options);

// Asks whether a model of the hub may be read with the token of `options`. Throws what fetch_model
// throws, but nothing when nobody can be reached.
void check_access(const std::string& model, const ResolveOptions& options);

// The same where only a model's files are meant: those that a preset is made of.
std::string resolve_files(const std::string& model, const ResolveOptions& options);

// The same as resolve_model where heads that draft may stand in place of the model that they were
// made for (base/files/speculator_folder.h), as text-generation-inference takes them.
struct ModelPaths {
  std::string model;
  std::string speculator;  // the heads' folder; "": there are none
};
ModelPaths resolve_model_or_heads(const std::string& model, const ResolveOptions& options);

// The readable name of a model that the daemon has: "ORG/NAME" for a folder in the hub's cache or
// of a conversion, else the path as it is.
std::string shown_model(const std::string& path);

}  // namespace tgi
