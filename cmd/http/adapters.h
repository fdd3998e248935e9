// Which LoRA adapters clients of the gateway may name, and where their files are. Thread-safe.
//
// A name is that of an adapter given at the start, or of one of the hub, which is found or
// downloaded when it is first asked for; a folder only where the request says that it is local. An
// adapter that was brought with a client's token is for requests with that token alone, as long as
// the hub takes it: what it said holds for a minute.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "cmd/http/api_error.h"
#include "ipc/protocol.h"

namespace tgi::http {

// What a request says of the adapter it wants.
struct AdapterAsk {
  std::optional<std::string> id{};
  std::optional<std::string> source{};  // "hub", "local", "s3"; absent: as the gateway was told
  std::optional<std::string> token{};   // to the hub, for this request; in no message
  std::optional<ipc::MergedAdapters> merged{};  // in place of id; without paths
};

// The folder of an adapter; with a token its source is asked whether that may read it, also where
// it is here. Throws tgi::Error. Called from several threads.
using ResolveAdapter =
    std::function<std::string(const std::string& id, const std::optional<std::string>& token)>;

struct NamedAdapter {
  std::string name;
  std::string folder;
};

struct AdaptersOptions {
  std::vector<NamedAdapter> named;  // given at the start
  std::string static_adapter;       // of requests that name none; empty: the base model
  std::string default_source = "hub";
  bool finds_others = true;  // those of the hub, not only the named ones
  ResolveAdapter resolve;
  std::chrono::milliseconds token_holds = std::chrono::minutes(1);
  // The folder itself, or of its conversion where it has weights of torch only. (optional) Throws
  // tgi::Error. Called from several threads.
  std::function<std::string(const std::string& folder)> convert{};
};

class Adapters {
 public:
  explicit Adapters(AdaptersOptions options);

  // Sets the adapter of a request to the daemon, or those that are merged; none for the base model,
  // which is also called `model_id` and can't be merged. Throws ApiError: 424 where it is not to be
  // had, 422 for a source that is not known.
  void choose(const AdapterAsk& ask, const std::string& model_id, ipc::GenerateRequest& request);

  // Whether it was given or added, or was found for some request without a token.
  bool knows(const std::string& name) const;
  // Those, sorted.
  std::vector<std::string> names() const;

  // From now on `folder` is what the name stands for, as if it had been given at the start.
  void add(const std::string& name, const std::string& folder);
  // Of those that were given, added or found: it is none of them any more.
  void remove(const std::string& name);

  // Of a path of this machine, which is looked at, or a name of the hub. Throws Error. For those
  // who may name folders.
  std::string find_folder(const std::string& path) const;

  // Where one is looked for that such a request names: "hub", "local", "s3".
  std::string source_of(const AdapterAsk& ask) const {
    return ask.source.value_or(options_.default_source);
  }

  bool finds_others() const { return options_.finds_others; }

  // Whether there are adapters to watch: some were given at the start, or asked for since.
  bool are_in_play() const { return were_asked_for_; }

 private:
  std::optional<std::string> find_named(const std::string& name) const;
  std::optional<std::string> path_of(const AdapterAsk& ask, const std::string& id);
  std::string folder_of(const AdapterAsk& ask, const std::string& id);
  std::string converted(const std::string& folder) const;

  using Clock = std::chrono::steady_clock;
  struct Found {
    std::string folder;
    Clock::time_point asked_at;  // its source
  };
  using Key = std::pair<std::string, std::string>;  // id and token
  std::optional<std::string> find_again(const Key& key) const;

  const AdaptersOptions options_;
  std::atomic<bool> were_asked_for_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> named_;  // the folders; guarded by mutex_
  std::map<Key, Found> found_;                // guarded by mutex_
};

struct Service;

// Those that clients of the service may name: the gateway's, and those that the daemon has loaded.
std::vector<std::string> adapter_names(const Service& service);

}  // namespace tgi::http
