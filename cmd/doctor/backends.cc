#include "cmd/doctor/backends.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "base/error.h"
#include "base/version.h"
#include "cmd/doctor/daemon.h"
#include "cmd/ps.h"

namespace tgi::doctor {
namespace {

using ipc::OrderedJson;

std::string quote(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

Finding describe_speed(const OrderedJson& backend, double read_bytes_per_s) {
  const double prompt = backend.value("prompt_flops_per_s", 0.0);
  const double decode = backend.value("decode_bytes_per_s", 0.0);
  Finding out{.name = fmt::format("matmul {}", backend.value("name", "")),
              .text = fmt::format("{}: prompts {:.0f} GFLOP/s, decoding reads {:.1f} GB/s",
                                  backend.value("dtype", ""), prompt * 1e-9, decode * 1e-9),
              .data = {{"prompt_flops_per_s", prompt}, {"decode_bytes_per_s", decode}}};
  if (read_bytes_per_s > 0 && backend.value("name", "") == "cpu") {
    out.text += fmt::format(" ({:.0f} % of plain reading)", 100 * decode / read_bytes_per_s);
    // Half of it is far from what the kernels reach on an idle machine.
    if (decode < 0.5 * read_bytes_per_s) {
      out.verdict = Verdict::kWarn;
      out.advice = "something else uses the processor, or its quota is small: look with top";
    }
  }
  return out;
}

Finding describe_cpu(const OrderedJson& backend) {
  Finding out{.name = "processor",
              .text = fmt::format("{}, {}, {} threads", backend.value("device", "unknown"),
                                  backend.value("isa", ""), backend.value("num_threads", 0)),
              .data = backend};
  // Where better kernels failed, a line of its own says so.
  if (backend.value("isa", "") == "generic" &&
      backend.value("left_out", OrderedJson::array()).empty()) {
    out.verdict = Verdict::kWarn;
    out.advice = "no AVX2 here: everything works, and is several times slower than it could be";
  }
  return out;
}

// One line for each instruction set that the processor announces but that failed its trial.
void add_left_out(const OrderedJson& backend, std::vector<Finding>& out) {
  for (const OrderedJson& one : backend.value("left_out", OrderedJson::array())) {
    out.push_back(describe_left_out(ipc::LeftOutKernels{
        one.value("isa", ""), one.value("kernel", ""), one.value("reason", "")}));
  }
}

Finding describe_gpu(const OrderedJson& backend, bool has_nvidia) {
  Finding out{.name = "GPU", .text = "none", .data = backend};
  if (backend.value("found", false)) {
    out.text =
        fmt::format("{} x {} ({}), {} may be used of the first", backend.value("num_devices", 1),
                    backend.value("device", ""), backend.value("isa", ""),
                    format_bytes(backend.value("memory_bytes", int64_t{0})));
  } else if (has_nvidia) {
    out.verdict = Verdict::kWarn;
    out.text = fmt::format("there is one, but it can't be used: {}", backend.value("reason", ""));
    out.advice =
        "models run on the processor; install the driver and libtgi-cuda.so (tgi-cuda), see "
        "docs/cuda.md";
  }
  return out;
}

}  // namespace

OrderedJson run_probe(const std::string& program) {
  const std::string command = quote(program) + " --probe 2>&1";
  FILE* pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) throw Error(Code::kInternal, fmt::format("{}: can't be started", program));
  std::string text;
  std::array<char, 4096> bytes;
  for (size_t count = 0; (count = std::fread(bytes.data(), 1, bytes.size(), pipe)) > 0;) {
    text.append(bytes.data(), count);
  }
  const int status = ::pclose(pipe);
  const OrderedJson parsed = OrderedJson::parse(text, nullptr, false);
  if (status == 0 && parsed.is_object()) return parsed;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::string last = text.substr(text.rfind('\n') + 1);
  const std::string how = WIFSIGNALED(status)
                              ? fmt::format("was killed by signal {}", WTERMSIG(status))
                              : fmt::format("ended with exit status {}", WEXITSTATUS(status));
  throw Error(Code::kInternal, fmt::format("{} --probe {}: {}", program, how, last));
}

std::vector<Finding> look_at_probe(const OrderedJson& probe,
                                   double read_bytes_per_s,
                                   bool has_nvidia) {
  std::vector<Finding> out;
  std::vector<Finding> speeds;
  for (const OrderedJson& backend : probe.value("backends", OrderedJson::array())) {
    const bool is_cpu = backend.value("name", "") == "cpu";
    if (is_cpu && !backend.value("found", false)) {
      out.push_back({.name = "processor",
                     .verdict = Verdict::kFail,
                     .text = backend.value("reason", "its backend does not start"),
                     .advice = "no model can run on it: fix what this says, or free memory"});
      continue;
    }
    out.push_back(is_cpu ? describe_cpu(backend) : describe_gpu(backend, has_nvidia));
    add_left_out(backend, out);
    if (backend.value("found", false)) speeds.push_back(describe_speed(backend, read_bytes_per_s));
  }
  out.insert(out.end(), speeds.begin(), speeds.end());
  return out;
}

}  // namespace tgi::doctor
