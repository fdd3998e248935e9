// The files of a model by name, wherever they are: a folder or the executable itself (the demo
// model). Views stay valid as long as the source. Safe to read from several threads.
//
// In a folder, small files are read into memory and large ones are mapped (mapped_file.h). Whoever
// has read from a source calls check_intact before it trusts what it made of it.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tgi {

class FileSource {
 public:
  virtual ~FileSource() = default;

  // The bytes of `name`, or nothing when there is no such file. Throws when it is there but can't
  // be read, and kNotFound when it is a link that leads to no file.
  virtual std::optional<std::span<const std::byte>> find(const std::string& name) const = 0;

  // Names of the files that lie in it, not in folders of it, sorted. (optional: none by default)
  virtual std::vector<std::string> names() const { return {}; }

  // Where `name` is or would be, for messages.
  virtual std::string describe(const std::string& name) const = 0;

  // Tells the system that these bytes (inside a view given by find) won't be read again soon, so
  // that their memory need not stay resident. (optional: does nothing by default)
  virtual void release(std::span<const std::byte> bytes) const;

  // Throws kInvalidArgument naming the first file of which some could not be read, because it was
  // cut short since it was opened or its disk fails. (optional: nothing can happen to it)
  virtual void check_intact() const {}

  std::optional<std::string_view> find_text(const std::string& name) const;

  // Throws kNotFound naming the file when it is not there.
  std::span<const std::byte> require(const std::string& name) const;
  std::string_view require_text(const std::string& name) const;
};

// What `make` makes of the files, when all that it read was there; else what check_intact throws,
// whatever `make` thought of it.
template <typename Make>
auto made_of_intact(const FileSource& files, Make make) {
  try {
    auto made = make();
    files.check_intact();
    return made;
  } catch (const std::exception&) {
    files.check_intact();
    throw;
  }
}

// Throws kNotFound when `folder` is not there and kInvalidArgument when it is not a folder.
std::unique_ptr<FileSource> open_folder(const std::string& folder);

struct EmbeddedFile {
  std::string_view name;
  std::span<const std::byte> bytes;
};

std::unique_ptr<FileSource> open_embedded(std::string label, std::vector<EmbeddedFile> files);

}  // namespace tgi
