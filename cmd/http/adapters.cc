#include "cmd/http/adapters.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/files/adapter_path.h"
#include "cmd/http/service.h"

namespace tgi::http {
namespace {

// LoRAX's and TGI's name of the base model.
constexpr std::string_view kBase = "base-model";

ApiError adapter_error(const std::string& id, const std::string& problem) {
  return daemon_error(Error(Code::kAdapter, fmt::format("adapter {}: {}", id, problem)), false);
}

void check_source(const std::string& source) {
  if (source == "hub" || source == "local" || source == "s3") return;
  throw validation_error(
      fmt::format("`adapter_source` must be hub, local or s3. Given: {}", source.substr(0, 100)));
}

}  // namespace

Adapters::Adapters(AdaptersOptions options)
    : options_(std::move(options)), were_asked_for_(!options_.named.empty()) {
  for (const NamedAdapter& each : options_.named) named_.try_emplace(each.name, each.folder);
}

std::optional<std::string> Adapters::find_named(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto it = named_.find(name);
  return it == named_.end() ? std::nullopt : std::optional(it->second);
}

void Adapters::add(const std::string& name, const std::string& folder) {
  were_asked_for_ = true;
  const std::lock_guard lock(mutex_);
  named_.insert_or_assign(name, folder);
}

std::string Adapters::converted(const std::string& folder) const {
  return options_.convert ? options_.convert(folder) : folder;
}

void Adapters::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  named_.erase(name);
  found_.erase({name, ""});
}

std::string Adapters::find_folder(const std::string& path) const {
  if (!path.starts_with('/')) return options_.resolve(path, std::nullopt);
  if (may_hold_adapter(path)) return converted(path);
  throw Error(Code::kNotFound,
              "there is neither a folder with adapter_config.json nor a GGUF file");
}

void Adapters::choose(const AdapterAsk& ask,
                      const std::string& model_id,
                      ipc::GenerateRequest& request) {
  const auto is_base = [&](const std::string& id) {
    return id.empty() || id == model_id || id == kBase;
  };
  if (ask.source) check_source(*ask.source);
  if (ask.merged) {
    were_asked_for_ = true;
    ipc::MergedAdapters merged = *ask.merged;
    for (const std::string& id : merged.ids) {
      require(!is_base(id), "`merged_adapters.ids` can't have the base model among them");
      merged.paths.push_back(path_of(ask, id).value_or(""));
    }
    const bool has_paths =
        std::ranges::any_of(merged.paths, [](const auto& path) { return !path.empty(); });
    if (!has_paths) merged.paths.clear();
    request.merged_adapters = std::move(merged);
    return;
  }
  const std::string& id = ask.id.value_or(options_.static_adapter);
  if (is_base(id)) return;
  were_asked_for_ = true;
  request.adapter_path = path_of(ask, id);
  request.adapter = id;
}

// Nothing: what is no name of the hub, the daemon knows or nobody does.
std::optional<std::string> Adapters::path_of(const AdapterAsk& ask, const std::string& id) {
  if (id.size() > ipc::kMaxAdapterName) {
    throw validation_error(fmt::format("`adapter_id` has at most {} bytes. Given: {}",
                                       ipc::kMaxAdapterName, id.size()));
  }
  const bool is_short = id.find('/') == std::string::npos;
  if (is_short && !find_named(id) && !ask.source) return std::nullopt;
  return folder_of(ask, id);
}

std::string Adapters::folder_of(const AdapterAsk& ask, const std::string& id) {
  if (std::optional<std::string> folder = find_named(id)) return std::move(*folder);
  const std::string source = source_of(ask);
  check_source(source);
  if (!options_.finds_others) {
    throw adapter_error(id, "this server has only the adapters that it was started with");
  }
  if (source == "local") {
    if (!id.starts_with('/')) {
      throw adapter_error(
          id, "a local adapter is named by the absolute path of its folder or GGUF file");
    }
    try {
      return converted(id);
    } catch (const Error& error) {
      throw adapter_error(id, error.what());
    }
  }
  const Key key(id, ask.token.value_or(""));
  if (std::optional<std::string> folder = find_again(key)) return std::move(*folder);
  // A path would be a folder of this machine.
  if (id.starts_with('/') || id.starts_with('.') || id.starts_with('~')) {
    throw adapter_error(id, "expected ORG/NAME of the hub; a folder needs adapter_source local");
  }
  try {
    const std::string address = source == "s3" && !id.starts_with("s3://") ? "s3://" + id : id;
    std::string folder = options_.resolve(address, ask.token);
    const std::lock_guard lock(mutex_);
    return found_.insert_or_assign(key, Found{std::move(folder), Clock::now()})
        .first->second.folder;
  } catch (const Error& error) {
    const std::lock_guard lock(mutex_);
    found_.erase(key);
    throw adapter_error(id, error.what());
  }
}

// Nothing: it has not been found yet, or its token has to be looked at again.
std::optional<std::string> Adapters::find_again(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = found_.find(key);
  if (it == found_.end()) return std::nullopt;
  const bool has_token = !key.second.empty();
  if (has_token && Clock::now() - it->second.asked_at >= options_.token_holds) return std::nullopt;
  return it->second.folder;
}

std::vector<std::string> Adapters::names() const {
  std::set<std::string> out;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, folder] : named_) out.insert(name);
  for (const auto& [key, found] : found_) {
    if (key.second.empty()) out.insert(key.first);
  }
  return {out.begin(), out.end()};
}

bool Adapters::knows(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return named_.contains(name) || found_.contains({name, ""});
}

std::vector<std::string> adapter_names(const Service& service) {
  std::set<std::string> out;
  if (service.adapters == nullptr) return {};
  for (const std::string& name : service.adapters->names()) out.insert(name);
  try {
    const auto list = ipc::adapter_list_from_json(
        ask_daemon(service, ipc::kAdapters, ipc::OrderedJson::object()));
    for (const ipc::AdapterStatus& each : list.adapters) out.insert(each.name);
  } catch (const Error&) {
    // A daemon that is not there has none.
  }
  return {out.begin(), out.end()};
}

}  // namespace tgi::http
