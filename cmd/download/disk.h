// Small things done to files, with errors in the user's terms: a full disk and a read-only cache
// are ordinary here, and each says what to do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tgi::download {

// "cache folder X can't be written (Read-only file system); give another with --cache-dir ..."
Error disk_error(std::string_view what, const std::string& path, int reason);

// The folder and those above it. Throws disk_error.
void make_folders(const std::string& path);

// All bytes at `offset`. Throws disk_error.
void write_at(int fd, std::span<const std::byte> bytes, int64_t offset, const std::string& path);

// Exactly as many bytes as `bytes` has; throws disk_error, also when the file ends before.
void read_at(int fd, std::span<std::byte> bytes, int64_t offset, const std::string& path);

// Replaces `path` in one step: the text is written to `temporary` first, of the same file system,
// which is all that a killed process can leave. Throws disk_error.
void write_whole(const std::string& path, std::string_view text, const std::string& temporary);

// Nothing as an empty string when it is not there; throws disk_error when it can't be read.
std::string read_whole(const std::string& path);

// Free for this user where `path` is or will be; -1 when it can't be told.
int64_t free_bytes(const std::string& path);

// Regular files below a folder, links followed but those of folders, by name. What can't be read is
// passed over.
struct FileBelow {
  std::string name;  // relative to the folder
  int64_t bytes = 0;
};
std::vector<FileBelow> files_below(const std::string& folder, int max_depth = 1000);

// Without white space at its end; empty when the file can't be read.
std::string first_line_of(const std::string& path);

// Under any of its paths.
bool is_same_file(const std::string& a, const std::string& b);

bool exists(const std::string& path);      // follows links
int64_t size_of(const std::string& path);  // of the file a link leads to; -1 when there is none

// "3.21 GB": decimal, as the hub and disks count.
std::string format_size(int64_t bytes);

}  // namespace tgi::download
