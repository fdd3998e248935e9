#include "cmd/ps_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <optional>

#include "base/color.h"
#include "cmd/bench/live_view.h"
#include "cmd/model_path.h"
#include "cmd/ps.h"

namespace tgi {
namespace {

constexpr std::string_view kStepSeconds = "tgi_batch_inference_duration";

bool has_label(const ipc::MetricSample& sample, std::string_view name, std::string_view value) {
  const auto found = std::ranges::find(sample.labels, name, [](const auto& l) { return l.first; });
  return found == sample.labels.end() ? value.empty() : found->second == value;
}

// Of the steps of a model; its own name is empty where it has none.
void add_steps(const std::vector<ipc::MetricFamily>& families,
               std::string_view model,
               ModelMoment& out) {
  for (const ipc::MetricFamily& family : families) {
    if (family.name != kStepSeconds) continue;
    for (const ipc::MetricSample& sample : family.samples) {
      if (!has_label(sample, "model", model)) continue;
      int64_t count = 0;
      for (const int64_t each : sample.counts) count += each;
      const bool is_decode = has_label(sample, "method", "decode");
      (is_decode ? out.num_decode_steps : out.num_prefill_steps) += count;
      (is_decode ? out.decode_seconds : out.prefill_seconds) += sample.sum;
    }
  }
}

ModelMoment model_moment(const std::string& name,
                         const std::string& phase,
                         const std::optional<ipc::ModelStatus>& model,
                         const ipc::Counters& counters) {
  ModelMoment out;
  out.name = name;
  out.phase = phase;
  out.num_prompt_tokens = counters.num_prompt_tokens;
  out.num_cached_tokens = counters.num_cached_tokens;
  out.num_generated_tokens = counters.num_generated_tokens;
  if (!model) return out;
  out.num_running = model->num_running;
  out.num_waiting = model->num_waiting;
  out.num_blocks = model->num_blocks;
  out.num_blocks_used = model->num_blocks_used;
  out.num_blocks_cached = model->num_blocks_cached;
  return out;
}

std::string rate(int64_t before, int64_t now, double seconds) {
  if (seconds <= 0 || now < before) return "-";
  return fmt::format("{:.1f}", static_cast<double>(now - before) / seconds);
}

std::string mean_ms(double seconds, int64_t count) {
  if (count <= 0 || seconds < 0) return "-";
  return fmt::format("{:.1f}", 1000 * seconds / static_cast<double>(count));
}

std::string percent(int64_t part, int64_t whole) {
  if (whole <= 0) return "-";
  return fmt::format("{} %", 100 * part / whole);
}

constexpr size_t kPipeNameWidth = 32;
constexpr size_t kLeastNameWidth = 11;  // beside the others in 80 columns
constexpr size_t kOtherColumns = 68;    // with the blanks between all

std::string fitted(const std::string& name, size_t width) {
  if (name.size() <= width) return fmt::format("{:<{}}", name, width);
  size_t at = name.size() - (width - 2);
  while (at < name.size() && (static_cast<unsigned char>(name[at]) & 0xC0) == 0x80) ++at;
  return ".." + name.substr(at);
}

template <typename... Cells>
std::string row(size_t name_width, const std::string& name, const Cells&... cells) {
  return fitted(name, name_width) +
         fmt::format(" {:<10} {:>4} {:>4} {:>8} {:>8} {:>5} {:>6} {:>7} {:>7}", cells...);
}

std::string line_of(const ModelMoment* before,
                    const ModelMoment& now,
                    double seconds,
                    size_t name_width) {
  const ModelMoment& old = before == nullptr ? now : *before;
  const double over = before == nullptr ? 0 : seconds;
  const int64_t computed_before = old.num_prompt_tokens - old.num_cached_tokens;
  const int64_t computed = now.num_prompt_tokens - now.num_cached_tokens;
  return row(
      name_width, now.name, now.phase, now.num_running, now.num_waiting,
      rate(old.num_generated_tokens, now.num_generated_tokens, over),
      rate(computed_before, computed, over), percent(now.num_blocks_used, now.num_blocks),
      percent(now.num_blocks_cached, now.num_blocks),
      mean_ms(now.decode_seconds - old.decode_seconds, now.num_decode_steps - old.num_decode_steps),
      mean_ms(now.prefill_seconds - old.prefill_seconds,
              now.num_prefill_steps - old.num_prefill_steps));
}

std::string clock_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return fmt::format("{:02}:{:02}:{:02}", local.tm_hour, local.tm_min, local.tm_sec);
}

// One at a time: draws, or writes lines.
class Watch {
 public:
  Watch(Session& session, bool json)
      : session_(session),
        json_(json),
        view_(session.out().fd(), session.out().is_terminal() && knows_sequences() && !json) {}

  void look() {
    const ipc::Client& client = session_.client();
    const ipc::Status status = client.status();
    if (json_) return session_.out().write(ipc::to_json(status).dump() + "\n");
    const std::chrono::duration<double> at = std::chrono::steady_clock::now().time_since_epoch();
    Moment now =
        moment_of(status, ipc::metric_families_from_json(client.call(ipc::kMetrics)), at.count());
    view_.enabled() ? draw(status, now) : write(now);
    before_ = std::move(now);
    is_first_ = false;
  }

  // What was drawn last stays below the prompt's line.
  void end() {
    if (!view_.enabled()) return;
    view_.erase();
    for (const std::string& line : drawn_) session_.out().write(line + "\n");
  }

 private:
  void draw(const ipc::Status& status, const Moment& now) {
    size_t width = 5;
    for (const ModelMoment& model : now.models) width = std::max(width, model.name.size());
    const size_t room = std::max(view_.width(), kOtherColumns) - kOtherColumns;
    width = std::min(width, std::max(room, kLeastNameWidth));
    drawn_ = {
        fmt::format("{}  tgid {}, {} resident, {} requests so far; Ctrl-C ends", clock_text(),
                    status.version, format_bytes(status.rss_bytes), status.counters.num_requests),
        "", watch_head(width)};
    for (std::string& line : watch_lines(before_, now, width)) drawn_.push_back(std::move(line));
    view_.draw(drawn_);
  }

  void write(const Moment& now) {
    const std::string time = clock_text();
    if (is_first_)
      session_.out().write(fmt::format("{:<8} {}\n", "TIME", watch_head(kPipeNameWidth)));
    for (const std::string& line : watch_lines(before_, now, kPipeNameWidth)) {
      session_.out().write(fmt::format("{} {}\n", time, line));
    }
  }

  Session& session_;
  const bool json_;
  bench::LiveView view_;
  Moment before_;
  std::vector<std::string> drawn_;
  bool is_first_ = true;
};

}  // namespace

Moment moment_of(const ipc::Status& status,
                 const std::vector<ipc::MetricFamily>& families,
                 double seconds) {
  Moment out{.seconds = seconds, .models = {}};
  const ipc::ModelStatus* const known = status.known();
  const std::string served = known == nullptr ? "" : known->served_name;
  const std::string name = known == nullptr ? "(none)"
                           : served.empty() ? shown_model(known->name)
                                            : served;
  out.models.push_back(model_moment(name, status.phase, status.model, status.counters));
  add_steps(families, "", out.models.back());
  if (!served.empty()) add_steps(families, served, out.models.back());
  for (const ipc::OtherModelStatus& other : status.others) {
    out.models.push_back(model_moment(other.name, other.phase, other.model, other.counters));
    add_steps(families, other.name, out.models.back());
  }
  return out;
}

std::string watch_head(size_t name_width) {
  return row(name_width, "MODEL", "PHASE", "RUN", "WAIT", "TOKENS/S", "PROMPT/S", "KV", "CACHED",
             "STEP MS", "PREFILL");
}

std::vector<std::string> watch_lines(const Moment& before, const Moment& now, size_t name_width) {
  std::vector<std::string> out;
  for (const ModelMoment& model : now.models) {
    const auto found = std::ranges::find(before.models, model.name, &ModelMoment::name);
    out.push_back(line_of(found == before.models.end() ? nullptr : &*found, model,
                          now.seconds - before.seconds, name_width));
  }
  return out;
}

int watch_daemon(Session& session, double interval_seconds, bool json) {
  Watch watch(session, json);
  try {
    for (;;) {
      watch.look();
      session.client().pause(static_cast<int>(std::lround(1000 * interval_seconds)));
    }
  } catch (const ipc::Stopped& stopped) {
    if (stopped.why() != ipc::Stopped::Why::kCancelFd) throw;
    session.interrupt().take();
    watch.end();
    return 0;
  }
}

}  // namespace tgi
