#include "cmd/download/install_record.h"

#include <fmt/format.h>

#include <ctime>

#include "base/error.h"
#include "base/store/store.h"
#include "cmd/download/hub_names.h"

namespace tgi::download {
namespace {

// "ORG/NAME" for main, "ORG/NAME@REVISION" else; an address as it is without its secrets.
std::string name_of(const FetchedModel& model, const std::string& revision) {
  return revision.empty() || revision == "main" ? model.name
                                                : fmt::format("{}@{}", model.name, revision);
}

std::string revision_of(const FetchRequest& request, const FetchedModel& model) {
  if (model.source != "hub") return "";
  return request.revision.empty() ? require_hub_name(request.model).revision : request.revision;
}

std::string hash_of(const RemoteFile& file) {
  if (!file.sha256.empty()) return "sha256:" + file.sha256;
  if (!file.git_sha1.empty()) return "git:" + file.git_sha1;
  return file.md5.empty() ? "" : "md5:" + file.md5;
}

}  // namespace

std::string record_install(const FetchRequest& request, const FetchedModel& model) {
  const bool is_part = !request.rules.include.empty() || !request.rules.exclude.empty();
  if (model.source == "folder" || is_part) return "";
  try {
    Store store = Store::open();
    if (store.is_read_only() && !store.is_disk_full()) return "";
    InstalledModel record;
    record.revision = revision_of(request, model);
    record.name = name_of(model, record.revision);
    const auto known = store.find_model(record.name);
    const bool is_same = known && known->commit == model.commit && known->path == model.path;
    if (is_same) {
      store.touch_model(record.name);
      return "";
    }
    record.source = model.source == "hub" ? request.settings.endpoint : model.name;
    record.commit = model.commit;
    record.path = model.path;
    record.bytes = model.bytes;
    for (const RemoteFile& file : model.files) {
      record.files.push_back({.name = file.path, .bytes = file.size, .hash = hash_of(file)});
    }
    record.last_used_at = std::time(nullptr);
    store.put_model(record);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

static bool is_network_trouble(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const Error& trouble) {
    return trouble.code() == Code::kUnavailable;
  } catch (...) {
    return false;
  }
}

void FetchJob::tick(int64_t done_bytes, int64_t total_bytes) {
  constexpr std::chrono::seconds kWorthTelling{1};
  if (std::chrono::steady_clock::now() - begin_ < kWorthTelling) return;
  if (!job_) job_ = std::make_unique<StoredJob>("download", model_, total_bytes);
  const bool is_over = total_bytes > 0 && done_bytes >= total_bytes;
  job_->update(is_over ? "checking and converting" : "downloading", done_bytes, total_bytes);
}

void FetchJob::end(const std::exception_ptr& error) {
  if (!job_ && is_network_trouble(error)) job_ = std::make_unique<StoredJob>("download", model_, 0);
  if (job_) job_->end(error);
}

}  // namespace tgi::download
