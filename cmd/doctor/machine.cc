#include "cmd/doctor/machine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/unique_fd.h"
#include "cmd/ps.h"

namespace tgi::doctor {
namespace {

constexpr int64_t kLittleMemory = int64_t{1} << 30;
constexpr int64_t kLittleDisk = int64_t{5} << 30;
constexpr uint64_t kFewDescriptors = 4096;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::map<std::string, int64_t> read_meminfo(const std::string& root) {
  std::map<std::string, int64_t> bytes;
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t kib = 0;
    if (words >> name >> kib && !name.empty()) bytes[name.substr(0, name.size() - 1)] = kib << 10;
  }
  return bytes;
}

std::string limit_text(rlim_t value) {
  return value == RLIM_INFINITY ? "unlimited" : fmt::format("{}", value);
}

rlimit limit_of(__rlimit_resource resource) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  return limit;
}

// Where the folder is or would be made.
std::filesystem::path place_of(const std::string& folder) {
  const std::string there = nearest_folder(folder);
  return there.empty() ? "/" : there;
}

}  // namespace

Finding look_at_memory(const std::string& root) {
  std::map<std::string, int64_t> bytes = read_meminfo(root);
  const int64_t total = bytes["MemTotal"];
  const int64_t available = bytes["MemAvailable"];
  const int64_t swapped = bytes["SwapTotal"] - bytes["SwapFree"];
  Finding out{
      .name = "memory",
      .text = fmt::format("{}, {} available{}", format_bytes(total), format_bytes(available),
                          swapped > 0 ? fmt::format(", {} in swap", format_bytes(swapped)) : ""),
      .data = {{"total_bytes", total}, {"available_bytes", available}, {"swapped_bytes", swapped}}};
  if (total == 0) {
    out.verdict = Verdict::kFail;
    out.text = "the kernel does not tell";
    out.advice = "mount /proc: the daemon plans its memory by it";
  } else if (available < kLittleMemory) {
    out.verdict = Verdict::kWarn;
    out.advice = "little is left for a model: end other programs, or load with --quantize int4";
  }
  return out;
}

Finding look_at_huge_pages(const std::string& root) {
  // "always [madvise] never": the one in brackets.
  const std::string line = first_line(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t open = line.find('[');
  const size_t close = line.find(']');
  const std::string mode = open == std::string::npos || close == std::string::npos
                               ? ""
                               : line.substr(open + 1, close - open - 1);
  Finding out{
      .name = "huge pages",
      .text = mode.empty() ? "the kernel tells of no transparent ones" : "transparent: " + mode,
      .data = {{"transparent", mode}}};
  if (mode.empty()) out.verdict = Verdict::kUnknown;
  if (mode == "never") {
    out.verdict = Verdict::kWarn;
    out.advice =
        "weights on small pages are read more slowly: echo madvise > "
        "/sys/kernel/mm/transparent_hugepage/enabled";
  }
  return out;
}

Finding look_at_limits() {
  const rlimit files = limit_of(RLIMIT_NOFILE);
  const rlimit locked = limit_of(RLIMIT_MEMLOCK);
  const rlimit space = limit_of(RLIMIT_AS);
  const std::string memlock = locked.rlim_cur == RLIM_INFINITY
                                  ? "unlimited"
                                  : format_bytes(static_cast<int64_t>(locked.rlim_cur));
  Finding out{.name = "limits",
              .text = fmt::format("open files {} (up to {}), locked memory {}",
                                  limit_text(files.rlim_cur), limit_text(files.rlim_max), memlock),
              .data = {{"open_files", files.rlim_cur},
                       {"open_files_max", files.rlim_max},
                       {"locked_bytes", locked.rlim_cur},
                       {"address_space_bytes", space.rlim_cur}}};
  if (files.rlim_max < kFewDescriptors) {
    out.verdict = Verdict::kWarn;
    out.advice = fmt::format(
        "each client needs one or two files: raise the hard limit (ulimit -Hn, LimitNOFILE=) to "
        "{} or more",
        kFewDescriptors);
  }
  if (space.rlim_cur != RLIM_INFINITY) {
    out.verdict = Verdict::kWarn;
    out.text +=
        fmt::format(", address space {}", format_bytes(static_cast<int64_t>(space.rlim_cur)));
    out.advice = "checkpoints are mapped whole: ulimit -v unlimited";
  }
  return out;
}

bool has_nvidia_hardware(const std::string& root) {
  std::error_code error;
  if (std::filesystem::exists(root + "/dev/nvidiactl", error)) return true;
  for (const auto& device :
       std::filesystem::directory_iterator(root + "/sys/bus/pci/devices", error)) {
    const std::string path = device.path().string();
    // 0x03: displays and 3D controllers.
    if (first_line(path + "/vendor") == "0x10de" &&
        first_line(path + "/class").starts_with("0x03")) {
      return true;
    }
  }
  return false;
}

Finding look_at_state(const std::string& folder) {
  Finding out{.name = "state", .text = folder, .data = {{"folder", folder}}};
  std::string trouble;
  try {
    make_private_dir(folder);
    std::string file = folder + "/doctor.XXXXXX";
    const UniqueFd probe(::mkostemp(file.data(), O_CLOEXEC));
    if (probe) {
      ::unlink(file.c_str());
    } else {
      trouble = fmt::format("folder {}: {}", folder, std::strerror(errno));
    }
  } catch (const Error& error) {
    trouble = error.what();
  }
  if (!trouble.empty()) {
    out.verdict = Verdict::kFail;
    out.text = trouble;
    out.advice = fmt::format("no daemon can be started without its log: {}", kStateAdvice);
  }
  return out;
}

Finding look_at_conversions(const std::string& folder) {
  Finding out{.name = "conversions", .text = folder, .data = {{"folder", folder}}};
  const std::filesystem::path there = place_of(folder);
  if (::access(there.c_str(), W_OK | X_OK) != 0) {
    out.verdict = Verdict::kWarn;
    out.text += fmt::format(": {}: {}", there.string(), std::strerror(errno));
    out.advice = "checkpoints of torch can't be converted: set XDG_CACHE_HOME to another folder";
  }
  return out;
}

Finding look_at_cache(const std::string& folder) {
  namespace fs = std::filesystem;
  Finding out{.name = "cache", .text = folder, .data = {{"folder", folder}}};
  std::error_code error;
  int64_t num_bytes = 0;
  if (fs::is_directory(folder, error)) {
    // Snapshots are links to blobs: only what is no link has a size.
    fs::recursive_directory_iterator entries(folder, fs::directory_options::skip_permission_denied,
                                             error);
    for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
      std::error_code gone;
      if (!entries->is_symlink(gone) && entries->is_regular_file(gone)) {
        const auto size = entries->file_size(gone);
        if (!gone) num_bytes += static_cast<int64_t>(size);
      }
    }
  } else {
    out.text += " (not there yet)";
  }
  const fs::path there = place_of(folder);
  const fs::space_info space = fs::space(there, error);
  const auto free = error ? int64_t{-1} : static_cast<int64_t>(space.available);
  out.text += fmt::format(", {} of models", format_bytes(num_bytes));
  if (free >= 0) out.text += fmt::format(", {} free on its disk", format_bytes(free));
  out.data["size_bytes"] = num_bytes;
  out.data["free_bytes"] = free;
  if (free >= 0 && free < kLittleDisk) {
    out.verdict = Verdict::kWarn;
    out.advice = "a model may not fit: `tgi rm` what is not needed, or set HF_HUB_CACHE";
  }
  if (::access(there.c_str(), W_OK | X_OK) != 0) {
    out.verdict = Verdict::kWarn;
    out.text += fmt::format("; {}: {}", there.string(), std::strerror(errno));
    out.advice = "nothing can be downloaded to it: set HF_HOME or HF_HUB_CACHE to another folder";
  }
  return out;
}

}  // namespace tgi::doctor
