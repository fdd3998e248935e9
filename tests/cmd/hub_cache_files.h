// A small cache in the layout of the Hugging Face Hub, for tests that list and remove.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace tgi {

class HubCacheFiles {
 public:
  explicit HubCacheFiles(std::string folder) : folder_(std::move(folder)) {}

  const std::string& path() const { return folder_; }
  std::string repo(const std::string& name) const { return folder_ + "/models--" + name; }
  std::string snapshot(const std::string& name, const std::string& commit) const {
    return repo(name) + "/snapshots/" + commit;
  }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }

  // `name` as "org--tiny". The file of a snapshot is a link to a blob named by `hash`.
  void add(const std::string& name,
           const std::string& commit,
           const std::string& file,
           const std::string& hash,
           const std::string& text) const {
    write(repo(name) + "/blobs/" + hash, text);
    const std::filesystem::path link = snapshot(name, commit) + "/" + file;
    std::filesystem::create_directories(link.parent_path());
    std::filesystem::path target = "../../blobs/" + hash;
    if (file.find('/') != std::string::npos) target = "../" + target.string();
    std::filesystem::create_symlink(target, link);
  }

  void set_ref(const std::string& name, const std::string& ref, const std::string& commit) const {
    write(repo(name) + "/refs/" + ref, commit);
  }

  // org/tiny: main at commit bbb, v1 at aaa; they share their config, 300 bytes each of weights.
  void add_two_revisions() const {
    for (const std::string commit : {"aaa", "bbb"}) {
      add("org--tiny", commit, "config.json", "config", "{}");
      add("org--tiny", commit, "model.safetensors", "weights-" + commit, std::string(300, 'w'));
    }
    set_ref("org--tiny", "main", "bbb");
    set_ref("org--tiny", "v1", "aaa");
  }

 private:
  std::string folder_;
};

}  // namespace tgi
