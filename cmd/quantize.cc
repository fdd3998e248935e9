#include "cmd/quantize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/gguf_format_names.h"
#include "base/known_names.h"
#include "base/standard_error.h"
#include "cmd/download/progress.h"
#include "cmd/model_path.h"
#include "cmd/ps.h"
#include "ipc/quantize_job.h"

namespace tgi {
namespace {

constexpr int kRedrawMs = 500;

// On a terminal one line that is drawn again and again, elsewhere a line for each event.
class ProgressLine {
 public:
  explicit ProgressLine(bool is_quiet)
      : is_quiet_(is_quiet), is_terminal_(::isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() { clear(); }

  void take(const ipc::ProgressEvent& event) {
    event_ = event;
    taken_at_ = Clock::now();
    if (!is_terminal_ && !is_quiet_) Session::say(text());
    draw();
  }

  void draw() {
    if (is_quiet_ || !is_terminal_ || !event_) return;
    write_stderr(fmt::format("\r\x1b[K{}", text()));
    is_drawn_ = true;
  }

  void clear() {
    if (is_drawn_) write_stderr("\r\x1b[K");
    is_drawn_ = false;
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::string text() const {
    const double since = std::chrono::duration<double>(Clock::now() - taken_at_).count();
    std::string out = "quantizing: ";
    if (event_->phase == "layer") {
      out += fmt::format("layer {} of {}", event_->done + 1, event_->total);
    } else {
      out += event_->phase == "comparing" ? "comparing with the source" : event_->phase;
    }
    out += fmt::format(", {}", download::format_duration(event_->seconds + since));
    if (event_->seconds_left) {
      const double left = *event_->seconds_left - since;
      if (left > 0) out += fmt::format(", about {} left", download::format_duration(left));
    }
    return out;
  }

  const bool is_quiet_;
  const bool is_terminal_;
  std::optional<ipc::ProgressEvent> event_;
  Clock::time_point taken_at_;
  bool is_drawn_ = false;
};

std::string absolute_path(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

bool is_gguf_format(std::string_view format) {
  return std::ranges::find(kGgufFormatNames, format) != kGgufFormatNames.end();
}

std::string groups_text(const ipc::QuantizeReport& report) {
  if (report.group_size > 0) return fmt::format(", groups of {}", report.group_size);
  return is_gguf_format(report.format) ? "" : ", a scale per row";
}

std::string report_text(const ipc::QuantizeReport& report) {
  const double growth = report.perplexity / report.source_perplexity - 1.0;
  std::string out = fmt::format("{}\n", report.output);
  out += fmt::format("format       {} ({}), {} bits{}\n", report.format, report.storage,
                     report.bits, groups_text(report));
  out += fmt::format("size         {}, source {}\n", format_bytes(report.bytes),
                     format_bytes(report.source_bytes));
  if (report.num_tokens == 0) {
    out += "measured on  nothing: models of this kind can't be run a layer at a time\n";
    return out + fmt::format("took         {}\n", download::format_duration(report.seconds));
  }
  out += fmt::format("perplexity   {:.4f}, source {:.4f} ({:+.2f} %)\n", report.perplexity,
                     report.source_perplexity, growth * 100.0);
  out += fmt::format("mean KL      {:.5f} nats, same favourite after {:.1f} % of the tokens\n",
                     report.mean_kl, report.top_token_agreement * 100.0);
  out += fmt::format("measured on  {}: {} tokens in {} sequences\n", report.calibration,
                     report.num_tokens, report.num_sequences);
  out += fmt::format("took         {}\n", download::format_duration(report.seconds));
  return out;
}

// A file where the format is one of files, a folder where it is one of folders.
void check_output(const QuantizeFlags& flags) {
  const bool is_file = flags.output.ends_with(".gguf");
  if (is_file == is_gguf_format(flags.format)) return;
  throw Error(Code::kInvalidArgument,
              is_file ? fmt::format("format {} is written as a folder, and {} is named like a GGUF "
                                    "file; formats of such files are {}",
                                    flags.format, flags.output, fmt::join(kGgufFormatNames, ", "))
                      : fmt::format("format {} is written as a GGUF file: give a name that ends in "
                                    ".gguf, not {}",
                                    flags.format, flags.output));
}

std::vector<std::string> format_names() {
  std::vector<std::string> out(kEncoderNames.begin(), kEncoderNames.end());
  out.insert(out.end(), kGgufFormatNames.begin(), kGgufFormatNames.end());
  return out;
}

}  // namespace

void add_quantize_flags(CLI::App& app, QuantizeFlags& flags) {
  app.footer(
      "The daemon does the work at its lowest priority; a model that it serves goes on. Ctrl-C "
      "cancels and leaves nothing. A folder is a checkpoint that tgi and transformers load, a "
      "file one that tgi, llama.cpp and ollama load.");
  app.add_option("model", flags.model,
                 "a Hugging Face folder, a name of the hub (ORG/NAME), or \"demo\"")
      ->type_name("MODEL")
      ->required();
  app.add_option("output", flags.output,
                 "the folder to write, or of a GGUF format the file, FILE.gguf; it must not exist "
                 "yet")
      ->type_name("OUTPUT")
      ->required();
  app.add_option("--format", flags.format,
                 "of a folder: int8, int4 (rounded to nearest), gptq, awq (4 bits, by how a text "
                 "uses the weights) or fp8; of a GGUF file: q4_k_m, q5_k_m, q6_k, q8_0, q4_0, "
                 "iq4_xs, mxfp4, or bf16, f16, f32 to convert only")
      ->type_name("FORMAT")
      ->check(CLI::IsMember(format_names()))
      ->required();
  app.add_option("--group-size", flags.group_size,
                 "columns that share a scale, -1: a whole row; default a row for int8, 32 for "
                 "int4, 128 for gptq and awq, or the next smaller that divides all matrices")
      ->type_name("N");
  app.add_option("--calibration", flags.calibration,
                 "text to measure on: plain, or *.jsonl with a \"text\" in each line; best like "
                 "what the model is used for; default a text that is built in")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  app.add_option("--calibration-sequences", flags.num_sequences,
                 "sequences of the text at most, evenly spread; default 64")
      ->type_name("N");
  app.add_option(
         "--calibration-length", flags.sequence_length,
         "tokens of a sequence, at most; default 512, or the model's context where that is shorter")
      ->type_name("N");
  app.add_flag("--act-order", flags.act_order,
               "gptq: take the columns by how much they are used; groups stay contiguous");
  app.add_option("--damping", flags.damping,
                 "gptq: added to the diagonal, as a part of its mean; default 0.01")
      ->type_name("X");
  app.add_flag("--force", flags.force,
               "write the model even if its perplexity grew by more than 10 %");
  app.add_flag("-q,--quiet", flags.quiet, "no progress on stderr");
  app.add_flag("--json", flags.json, "the result as one JSON object");
}

int run_quantize(const QuantizeFlags& flags, const CommonFlags& common) {
  check_output(flags);
  Session session(common);
  ResolveOptions resolve{.cancel_fd = session.interrupt().fd()};
  if (flags.quiet) resolve.on_line = [](const std::string&) {};
  ipc::QuantizeParams params{.model = resolve_files(flags.model, resolve),
                             .output = absolute_path(flags.output),
                             .format = flags.format,
                             .group_size = flags.group_size,
                             .calibration = std::nullopt,
                             .num_sequences = flags.num_sequences,
                             .sequence_length = flags.sequence_length,
                             .act_order = flags.act_order,
                             .damping = flags.damping,
                             .force = flags.force};
  if (flags.calibration) params.calibration = absolute_path(*flags.calibration);
  session.prepare({.wait_for_model = false, .accept_failed = true});
  ipc::Exchange exchange = session.client().open(ipc::kQuantize, ipc::to_json(params));
  std::optional<ipc::OrderedJson> result;
  {
    ProgressLine line(flags.quiet);
    while (!result) {
      const std::optional<ipc::Reply> reply = exchange.next(kRedrawMs);
      if (!reply) {
        line.draw();
      } else if (reply->progress) {
        line.take(*reply->progress);
      } else if (reply->result) {
        result = reply->result;
      }
    }
  }
  session.out().write(flags.json ? result->dump() + "\n"
                                 : report_text(ipc::quantize_report_from_json(*result)));
  return 0;
}

}  // namespace tgi
