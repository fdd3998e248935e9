#include "cmd/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "base/color.h"
#include "base/error.h"
#include "base/files/paths.h"
#include "cmd/config_settings.h"
#include "cmd/doctor/backends.h"
#include "cmd/doctor/daemon.h"
#include "cmd/doctor/machine.h"
#include "cmd/doctor_network.h"
#include "cmd/download/hub_env.h"
#include "cmd/ps.h"
#include "cmd/read_bandwidth.h"
#include "cmd/serve_flags.h"
#include "ipc/config_file.h"
#include "ipc/start_daemon.h"

namespace tgi {
namespace {

using doctor::Finding;
using doctor::Verdict;
using ipc::OrderedJson;

constexpr int64_t kReadBytes = int64_t{512} << 20;  // more than caches hold
constexpr int kFoundFailure = 1;

struct VerdictRow {
  std::string_view word;
  Style style;
};

VerdictRow verdict_row(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return {"ok", Style::kGreen};
    case Verdict::kUnknown:
      return {"skip", Style::kBold};
    case Verdict::kWarn:
      return {"warn", Style::kYellow};
    case Verdict::kFail:
      break;
  }
  return {"fail", Style::kRed};
}

// The file of settings, and the gateway that it has `tgi serve` open.
void look_at_settings(std::vector<Finding>& findings) {
  const ipc::ConfigFile file = ipc::read_config(config_path());
  check_config(file);
  findings.push_back({.name = "settings",
                      .text = file.entries.empty()
                                  ? fmt::format("{}: nothing is set", file.path)
                                  : fmt::format("{}: {} set", file.path, file.entries.size()),
                      .data = {{"file", file.path}, {"num_set", file.entries.size()}}});
}

void look_at_gateway(std::vector<Finding>& findings) {
  CLI::App app;
  ServeFlags flags;
  add_serve_flags(app, flags);
  const ServeOptions serve =
      resolve_serve_flags(flags, process_environment, ipc::read_config(config_path()));
  findings.push_back(doctor::look_at_gateway(serve.host, serve.port));
}

void look_at_downloads(std::vector<Finding>& findings) {
  const download::HubSettings settings = download::read_hub_settings(download::environment());
  findings.push_back(doctor::look_at_cache(settings.cache_dir));
  if (!settings.no_home.empty()) {
    findings.back().verdict = Verdict::kWarn;
    findings.back().advice = settings.no_home;
  }
  std::optional<JobRecord> last;
  for (JobRecord& job : Store::open().jobs(Store::kMaxJobs)) {
    if (!last && job.kind == "download") last = std::move(job);
  }
  findings.push_back(doctor::look_at_network(last, settings));
}

// Lines that throw are failures of their own and keep nobody else from being looked at.
template <typename Look>
void add(std::vector<Finding>& findings, const std::string& name, Look look) {
  try {
    look();
  } catch (const std::exception& error) {
    findings.push_back({.name = name,
                        .verdict = Verdict::kFail,
                        .text = error.what(),
                        .advice = "fix what this says"});
  }
}

Finding describe_reading(const ReadBandwidth& reading, int num_threads) {
  return {.name = "reading",
          .text = fmt::format("{:.1f} GB/s by {} threads over {}", reading.bytes_per_s * 1e-9,
                              num_threads, format_bytes(reading.buffer_bytes)),
          .data = {{"bytes_per_s", reading.bytes_per_s},
                   {"num_threads", num_threads},
                   {"buffer_bytes", reading.buffer_bytes}}};
}

void look_at_backends(std::vector<Finding>& findings) {
  const std::string program = ipc::find_daemon();
  const auto num_threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  // One after the other: they would take the processor from each other.
  const ReadBandwidth reading = measure_read_bandwidth(kReadBytes, num_threads);
  const OrderedJson probe = doctor::run_probe(program);
  const std::string version = probe.value("version", "");
  Finding binary{
      .name = "tgid",
      .text = fmt::format(
          "{} {}{}, backend interface {}", program, version,
          probe.value("commit", "").empty() ? "" : fmt::format(" ({})", probe.value("commit", "")),
          probe.value("backend_abi", 0)),
      .data = {{"path", program},
               {"version", version},
               {"commit", probe.value("commit", "")},
               {"backend_abi", probe.value("backend_abi", 0)}}};
  if (version != ipc::kVersion) {
    binary.verdict = Verdict::kWarn;
    binary.advice = fmt::format("this tgi is {}: install both from one release", ipc::kVersion);
  }
  findings.push_back(binary);
  for (Finding& finding :
       doctor::look_at_probe(probe, reading.bytes_per_s, doctor::has_nvidia_hardware())) {
    findings.push_back(std::move(finding));
  }
  findings.push_back(describe_reading(reading, num_threads));
}

std::string render(const std::vector<Finding>& findings, bool color) {
  std::string out;
  for (const Finding& finding : findings) {
    const VerdictRow row = verdict_row(finding.verdict);
    out += fmt::format("{}{} {:<12} {}\n", styled(row.word, row.style, color),
                       std::string(4 - row.word.size(), ' '), finding.name, finding.text);
    if (!finding.advice.empty()) out += fmt::format("     {:<12} -> {}\n", "", finding.advice);
  }
  return out;
}

OrderedJson to_json(const std::vector<Finding>& findings) {
  OrderedJson out = OrderedJson::array();
  for (const Finding& finding : findings) {
    out.push_back({{"name", finding.name},
                   {"verdict", verdict_row(finding.verdict).word},
                   {"text", finding.text},
                   {"advice", finding.advice},
                   {"data", finding.data}});
  }
  return out;
}

}  // namespace

void add_doctor_flags(CLI::App& app, DoctorFlags& flags) {
  app.footer(
      "Looks at the programs, the processor and the GPUs, memory, limits, the socket, the daemon "
      "and its model, the gateway where `tgi serve` would listen, the file of settings, and "
      "whether the folders of the state, downloads and conversions can be written. The network is "
      "asked only where the last download failed. Reads memory and multiplies matrices for about "
      "two seconds. With a model loaded, the daemon compares its next-token distributions over a "
      "fixed text with those of a second copy in float32, where memory allows; that copy takes 4 "
      "bytes a parameter while it runs.\n\n"
      "Each line is ok, warn or fail, with advice where it is not ok, or skip: nothing is known. "
      "The exit status is 1 when a line is fail. Never starts a daemon.");
  app.add_flag("--json", flags.json, "write one JSON object, for a report");
  app.add_flag("--quick", flags.quick, "measure nothing and load no second copy of the model");
}

int run_doctor(const DoctorFlags& flags, const CommonFlags& common) {
  Session session(common);
  std::vector<Finding> findings;
  findings.push_back({.name = "tgi", .text = flags.version, .data = {{"version", ipc::kVersion}}});
  if (flags.quick) {
    findings.push_back({.name = "measures",
                        .verdict = Verdict::kUnknown,
                        .text = "processor, GPUs, memory speed and the model's numbers: not "
                                "looked at with --quick"});
  } else {
    add(findings, "tgid", [&] { look_at_backends(findings); });
  }
  findings.push_back(doctor::look_at_memory());
  findings.push_back(doctor::look_at_huge_pages());
  findings.push_back(doctor::look_at_limits());
  findings.push_back(doctor::look_at_state(state_dir()));
  if (const auto notice = temporary_home_notice(); notice && findings.back().advice.empty()) {
    findings.back().verdict = Verdict::kWarn;
    findings.back().advice = *notice;
  }
  findings.push_back(doctor::look_at_conversions(cache_dir()));
  add(findings, "settings", [&] { look_at_settings(findings); });
  add(findings, "cache", [&] { look_at_downloads(findings); });
  const doctor::DaemonReport daemon = doctor::look_at_daemon(session.client());
  findings.insert(findings.end(), daemon.findings.begin(), daemon.findings.end());
  add(findings, "gateway", [&] { look_at_gateway(findings); });
  if (daemon.model && !flags.quick) {
    const int64_t bytes = daemon.model->num_params * static_cast<int64_t>(sizeof(float));
    Session::say(
        fmt::format("comparing the model with a float32 copy of {} ...", format_bytes(bytes)));
    findings.push_back(doctor::check_model(session.client(), *daemon.model));
  }
  const bool has_failure =
      std::any_of(findings.begin(), findings.end(),
                  [](const Finding& finding) { return finding.verdict == Verdict::kFail; });
  session.out().write(flags.json ? OrderedJson{{"ok", !has_failure},
                                               {"version", flags.version},
                                               {"findings", to_json(findings)}}
                                           .dump() +
                                       "\n"
                                 : render(findings, may_color(session.out().fd())));
  return has_failure ? kFoundFailure : 0;
}

}  // namespace tgi
