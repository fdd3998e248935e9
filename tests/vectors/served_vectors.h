// The golden folders of models that give vectors (scripts/golden/make_vectors), served, and what
// comes of texts by the way that a request takes.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/file_source.h"
#include "base/json.h"
#include "engine/runtime/served_model.h"

namespace tgi {

inline const std::string kGolden = TGI_SOURCE_DIR "/tests/golden/vectors/";

inline std::unique_ptr<ServedModel> serve_path(const std::string& path, int32_t num_shard = 1) {
  ModelOptions options;
  options.model = path;
  options.dtype = "f32";
  options.backend = "cpu";
  options.num_threads = 2;
  options.num_shard = num_shard;
  return ServedModel::load(options);
}

inline std::unique_ptr<ServedModel> serve(const std::string& name, int32_t num_shard = 1) {
  return serve_path(kGolden + name, num_shard);
}

// What came of them, in order. Throws what a request was told.
inline std::vector<PooledText> run(ServedModel& model,
                                   std::string_view method,
                                   const ipc::VectorParams& asked) {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  std::vector<PooledText> out;
  std::unique_ptr<Error> failure;
  std::vector<std::unique_ptr<Request>> requests = model.prepare_texts(method, asked);
  const auto texts = std::make_shared<PooledTexts>(
      requests.size(), [&](std::vector<PooledText>&& pooled, const Error* error) {
        const std::lock_guard lock(mutex);
        if (error != nullptr) failure = std::make_unique<Error>(*error);
        out = std::move(pooled);
        is_done = true;
        changed.notify_all();
      });
  for (size_t i = 0; i < requests.size(); ++i) {
    model.engine().submit(std::move(requests[i]), texts->sink(i));
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return is_done; });
  if (failure != nullptr) throw Error(*failure);
  return out;
}

// Of a folder's file, which need not be there.
inline void set_field(const std::string& folder,
                      const std::string& file,
                      const std::string& field,
                      const Json& value) {
  const auto files = open_folder(folder);
  Json json = files->find(file) ? parse_json(files->require_text(file)) : Json::object();
  json[field] = value;
  std::ofstream(folder + "/" + file) << json.dump();
}

// A copy of a golden folder in which a file has one more field.
inline void copy_with_field(const std::string& name,
                            const std::string& file,
                            const std::string& field,
                            const Json& value,
                            const std::string& to) {
  using Options = std::filesystem::copy_options;
  std::filesystem::copy(kGolden + name, to, Options::overwrite_existing | Options::recursive);
  set_field(to, file, field, value);
}

}  // namespace tgi
