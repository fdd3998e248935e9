#include "cmd/http/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

namespace tgi::http {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

void add(std::vector<MetricFamily>& out,
         const char* name,
         const char* help,
         MetricType type,
         std::optional<double> value) {
  if (!value) return;
  prometheus::ClientMetric metric;
  metric.counter.value = *value;
  metric.gauge.value = *value;
  out.push_back({.name = name, .help = help, .type = type, .metric = {std::move(metric)}});
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

std::optional<double> cpu_seconds() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::optional<double> num_open_fds() {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc/self/fd"), ::closedir);
  if (!dir) return std::nullopt;
  double count = -3;  // ".", ".." and the descriptor of this walk
  while (::readdir(dir.get()) != nullptr) ++count;
  return count;
}

std::optional<double> max_fds() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

// Unix time; from the clock ticks after boot in field 22 of /proc/self/stat.
std::optional<double> start_time() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 2));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  double ticks = 0;
  if (!(fields >> ticks)) return std::nullopt;
  timespec now{};
  timespec since_boot{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  return static_cast<double>(now.tv_sec - since_boot.tv_sec) +
         ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

std::vector<MetricFamily> process_metrics() {
  std::vector<MetricFamily> out;
  const double page = static_cast<double>(::sysconf(_SC_PAGESIZE));
  double num_virtual = 0;
  double num_resident = 0;
  if (std::ifstream file("/proc/self/statm"); file >> num_virtual >> num_resident) {
    add(out, "process_resident_memory_bytes", "Resident memory of the gateway", MetricType::Gauge,
        num_resident * page);
    add(out, "process_virtual_memory_bytes", "Virtual memory of the gateway", MetricType::Gauge,
        num_virtual * page);
  }
  add(out, "process_cpu_seconds_total", "User and system time of the gateway", MetricType::Counter,
      cpu_seconds());
  add(out, "process_open_fds", "Open file descriptors of the gateway", MetricType::Gauge,
      num_open_fds());
  add(out, "process_max_fds", "Limit of open file descriptors", MetricType::Gauge, max_fds());
  add(out, "process_start_time_seconds", "Start of the gateway, Unix time", MetricType::Gauge,
      start_time());
  return out;
}

}  // namespace tgi::http
