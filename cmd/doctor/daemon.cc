#include "cmd/doctor/daemon.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "base/version.h"
#include "cmd/ps.h"

namespace tgi::doctor {
namespace {

using ipc::OrderedJson;

// Mean divergence in nats above which something is odd, and above which it is broken. The first is
// several times what sound models show on the text (docs/cpu.md has figures), the second is where
// another token than the likely one is drawn all the time.
struct Bounds {
  std::string_view quantize;
  double odd;
  double broken;
};
constexpr std::array kBounds = {Bounds{"none", 0.01, 0.1}, Bounds{"int8", 0.05, 0.5},
                                Bounds{"int4", 0.5, 2.0}};

Finding look_at_socket(const std::string& path) {
  Finding out{.name = "socket", .text = path, .data = {{"path", path}}};
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    out.text += " (not there)";
    out.verdict = Verdict::kUnknown;
    return out;
  }
  out.text += fmt::format(", mode {:04o}, user {}, group {}", status.st_mode & 07777, status.st_uid,
                          status.st_gid);
  out.data["mode"] = status.st_mode & 07777;
  if ((status.st_mode & S_IWOTH) != 0) {
    out.verdict = Verdict::kWarn;
    out.advice = "every user of this machine may use the daemon: chmod o-w, or SocketMode=0660";
  }
  return out;
}

Finding describe_daemon(const ipc::Status& status) {
  Finding out{.name = "daemon",
              .text = fmt::format("version {}, pid {}, {}, {} resident", status.version, status.pid,
                                  status.phase, format_bytes(status.rss_bytes)),
              .data = {{"running", true},
                       {"version", status.version},
                       {"pid", status.pid},
                       {"phase", status.phase},
                       {"phase_detail", status.phase_detail},
                       {"rss_bytes", status.rss_bytes}}};
  if (status.phase == "failed") {
    out.verdict = Verdict::kFail;
    out.text = fmt::format("its model can't be loaded: {}", status.phase_detail);
    out.advice = "fix that, or `tgi load` another one";
  } else if (status.phase == "loading" || status.phase == "draining") {
    out.verdict = Verdict::kUnknown;  // what becomes of it
  } else if (status.version != kVersion) {
    out.verdict = Verdict::kWarn;
    out.advice = fmt::format(
        "this tgi is {}: `tgi stop`, and the next command starts its own daemon", kVersion);
  }
  return out;
}

Finding describe_model(const ipc::ModelStatus& model) {
  const ipc::MemoryPlan& memory = model.memory;
  return {.name = "model",
          .text = fmt::format("{}, {} on {} {}{}, {} of {} taken", model.name, model.dtype,
                              model.backend, model.isa,
                              model.quantize == "none" ? "" : ", " + model.quantize,
                              format_bytes(memory.held()), format_bytes(memory.available)),
          .data = {{"name", model.name},
                   {"architecture", model.architecture},
                   {"dtype", model.dtype},
                   {"quantize", model.quantize},
                   {"backend", model.backend},
                   {"isa", model.isa}}};
}

}  // namespace

Finding describe_left_out(const ipc::LeftOutKernels& one) {
  return {.name = "left out",
          .verdict = Verdict::kWarn,
          .text = fmt::format("{}: {}: {}", one.isa, one.kernel, one.reason),
          .advice =
              "the processor announces it, its kernels failed a trial, and the next best is "
              "used: please report this",
          .data = {{"isa", one.isa}, {"kernel", one.kernel}, {"reason", one.reason}}};
}

DaemonReport look_at_daemon(const ipc::Client& client) {
  DaemonReport out;
  out.findings.push_back(look_at_socket(client.socket_path()));
  try {
    const ipc::Status status = client.status();
    out.findings.push_back(describe_daemon(status));
    out.model = status.model;
    if (out.model) {
      out.findings.push_back(describe_model(*out.model));
      for (const ipc::LeftOutKernels& one : out.model->left_out) {
        out.findings.push_back(describe_left_out(one));
      }
    }
  } catch (const ipc::NobodyListens&) {
    out.findings.push_back({.name = "daemon",
                            .verdict = Verdict::kUnknown,
                            .text = "none is running; a command that needs one starts it",
                            .data = {{"running", false}}});
  } catch (const Error& error) {
    out.findings.push_back(
        {.name = "daemon",
         .verdict = Verdict::kFail,
         .text = error.what(),
         .advice = "it may be stuck or another user's: look at its log, or kill it",
         .data = {{"running", true}}});
  }
  return out;
}

Finding judge_check(const OrderedJson& result, const std::string& quantize) {
  const auto number = [&](const char* name) {
    const auto at = result.find(name);
    return at != result.end() && at->is_number() ? at->get<double>() : NAN;
  };
  const double mean_kl = number("mean_kl");
  const double agreement = number("greedy_agreement");
  if (!std::isfinite(mean_kl) || !std::isfinite(agreement)) {
    return {.name = "logits",
            .verdict = Verdict::kFail,
            .text = "against float32: the divergence is not a number",
            .advice = "the model's weights are damaged, or the daemon is of another version",
            .data = result};
  }
  Finding out{.name = "logits",
              .text = fmt::format(
                  "against float32: mean divergence {:.2g}, same greedy token at {:.0f} % of {} "
                  "positions",
                  mean_kl, 100 * agreement, result.value("num_positions", 0)),
              .data = result};
  for (const Bounds& bounds : kBounds) {
    if (bounds.quantize != quantize) continue;
    if (mean_kl > bounds.odd) {
      out.verdict = mean_kl > bounds.broken ? Verdict::kFail : Verdict::kWarn;
      out.advice = quantize == "none"
                       ? "this is more than rounding: try another --cpu-isa, and report it"
                       : "quantisation harms this model: use more bits, or none";
    }
  }
  return out;
}

Finding check_model(const ipc::Client& client, const ipc::ModelStatus& model) {
  try {
    return judge_check(client.call(ipc::kCheck), model.quantize);
  } catch (const Error& error) {
    if (error.code() == Code::kForbidden) {
      return {.name = "logits",
              .verdict = Verdict::kWarn,
              .text = fmt::format("not checked: {}", error.what()),
              .advice = "somebody who may manage the daemon can check its model"};
    }
    if (error.code() == Code::kNotFinite) {
      return {.name = "logits",
              .verdict = Verdict::kFail,
              .text = error.what(),
              .advice =
                  "where the weights are damaged, fetch or convert them again; where numbers "
                  "overflow, load it with --dtype f32 or bf16"};
    }
    const bool no_room = error.code() == Code::kOutOfMemory || error.code() == Code::kOverloaded;
    return {.name = "logits",
            .verdict = no_room ? Verdict::kWarn : Verdict::kFail,
            .text = fmt::format("not checked: {}", error.what()),
            .advice = no_room ? "free memory or wait until nothing runs, then ask again"
                              : "the model answers, and this did not: please report it"};
  }
}

}  // namespace tgi::doctor
