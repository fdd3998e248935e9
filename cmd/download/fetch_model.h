// From a model's name to a folder of this machine: found there, or brought there. What `tgi
// download-weights` and every --model of a command do.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cmd/download/file_choice.h"
#include "cmd/download/hub_env.h"
#include "cmd/download/transfer.h"

namespace tgi::download {

struct FetchRequest {
  // ORG/NAME[:FILE][@REVISION], s3://, https:// or http:// of a folder or a GGUF file, or a folder
  std::string model;
  std::string revision;   // empty: that of the name, else main
  std::string cache_dir;  // empty: the one of the settings
  ChoiceRules rules;
  bool offline = false;  // beside what the settings say
  HubSettings settings;
  Variables variables;  // of the environment, for S3
};

struct FetchedModel {
  std::string path;               // of the snapshot's folder, of its GGUF file, or a local one
  std::string source;             // "hub", "https", "s3" or "folder"
  std::string name;               // "ORG/NAME[:FILE]", or the address without its secrets
  std::string commit;             // empty for a folder
  std::vector<RemoteFile> files;  // that were chosen; empty for a folder
  int64_t bytes = 0;              // of all of them
};

// What a display is told beside the transfer's events.
class FetchObserver : public Observer {
 public:
  // Before the first byte; the indices of later events are those of `files`. Some may be there.
  virtual void on_plan(const std::string& what, const std::vector<RemoteFile>& files) = 0;
};

// Whether this names something that can be fetched: not "demo", and no folder that is there.
bool is_remote(const std::string& model);

// Whether it is a file here, which only a model of GGUF can be.
bool is_gguf_file(const std::string& model);

// Throws kNotFound for the name of a .gguf file that is not there: no model of the hub has such a
// name.
void refuse_missing_gguf(const std::string& model);

// What is in the cache, whole, without asking anybody. Nothing when something is missing.
std::optional<FetchedModel> find_model(const FetchRequest& request);

// Asks who has it whether it may be read with the token of the settings, and brings nothing. Who
// can't be reached has nothing against it. Throws what fetch_model throws.
void check_access(const FetchRequest& request, std::stop_token stop);

// Throws errors in the user's terms; what was downloaded until then is kept. With `offline` only
// what find_model finds.
FetchedModel fetch_model(const FetchRequest& request,
                         FetchObserver& observer,
                         std::stop_token stop);

}  // namespace tgi::download
