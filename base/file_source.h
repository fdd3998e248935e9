// The files of a model by name, wherever they are: a folder (mapped into memory) or the executable
// itself (the demo model). Views stay valid as long as the source. Safe to read from several
// threads.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tgi {

class MappedFile {
 public:
  // Throws kNotFound or kInvalidArgument with the system's reason.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

class FileSource {
 public:
  virtual ~FileSource() = default;

  // The bytes of `name`, or nothing when there is no such file. Throws when it is there but can't
  // be read.
  virtual std::optional<std::span<const std::byte>> find(const std::string& name) const = 0;

  // Of the files that lie in it, not in folders of it, sorted. (optional: none by default)
  virtual std::vector<std::string> names() const { return {}; }

  // Where `name` is or would be, for messages.
  virtual std::string describe(const std::string& name) const = 0;

  // Tells the system that these bytes (inside a view given by find) won't be read again soon, so
  // that their memory need not stay resident. (optional: does nothing by default)
  virtual void release(std::span<const std::byte> bytes) const;

  std::optional<std::string_view> find_text(const std::string& name) const;

  // Throws kNotFound naming the file when it is not there.
  std::span<const std::byte> require(const std::string& name) const;
  std::string_view require_text(const std::string& name) const;
};

// Throws kNotFound when `folder` is not there and kInvalidArgument when it is not a folder.
std::unique_ptr<FileSource> open_folder(const std::string& folder);

struct EmbeddedFile {
  std::string_view name;
  std::span<const std::byte> bytes;
};

std::unique_ptr<FileSource> open_embedded(std::string label, std::vector<EmbeddedFile> files);

}  // namespace tgi
