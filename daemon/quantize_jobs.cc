#include "daemon/quantize_jobs.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/give_way.h"
#include "base/log.h"
#include "base/store/store.h"
#include "engine/gguf/model_files.h"
#include "engine/quantize/quantizer.h"
#include "engine/runtime/backend_loader.h"
#include "engine/runtime/demo_model.h"

namespace tgi::daemon {
namespace {

// What the store is told. It is an index: a job goes on without it.
class JobNotes {
 public:
  explicit JobNotes(const std::string& subject) {
    try {
      store_ = Store::open();
      if (store_->is_read_only() && !store_->is_disk_full()) {
        store_.reset();
      } else {
        id_ = store_->begin_job("quantize", subject, 0);
      }
    } catch (const Error& error) {
      give_up(error);
    }
  }

  void update(const QuantizeProgress& progress) {
    if (!store_) return;
    try {
      store_->update_job(id_, progress.phase, progress.layer, progress.num_layers);
    } catch (const Error& error) {
      give_up(error);
    }
  }

  void end(std::string_view state, std::string_view message) {
    if (!store_) return;
    try {
      store_->end_job(id_, state, message);
    } catch (const Error& error) {
      give_up(error);
    }
  }

 private:
  void give_up(const Error& error) {
    log_warn("this job is not recorded in the store", {{"error", error.what()}});
    store_.reset();
  }

  std::optional<Store> store_;
  int64_t id_ = 0;
};

QuantizeOptions options_of(const ipc::QuantizeParams& params) {
  QuantizeOptions out;
  out.model = params.model;
  out.folder = params.output;
  out.format = params.format;
  if (params.group_size) out.group_size = static_cast<int32_t>(*params.group_size);
  if (params.calibration) out.calibration.file = *params.calibration;
  if (params.num_sequences) {
    out.calibration.num_sequences = static_cast<int32_t>(*params.num_sequences);
  }
  if (params.sequence_length) {
    out.calibration.sequence_length = static_cast<int32_t>(*params.sequence_length);
  }
  out.act_order = params.act_order;
  if (params.damping) out.damping = *params.damping;
  out.force = params.force;
  return out;
}

ipc::QuantizeReport report_of(const QuantizeResult& result) {
  return {.output = result.folder,
          .format = result.format,
          .storage = result.storage,
          .bits = result.bits,
          .group_size = result.group_size,
          .calibration = result.calibration,
          .num_sequences = result.num_sequences,
          .num_tokens = result.num_tokens,
          .source_perplexity = result.fidelity.source_perplexity,
          .perplexity = result.fidelity.changed_perplexity,
          .mean_kl = result.fidelity.mean_kl,
          .top_token_agreement = result.fidelity.top_token_agreement,
          .source_bytes = result.source_bytes,
          .bytes = result.bytes,
          .seconds = result.seconds};
}

}  // namespace

ipc::OrderedJson run_quantize_job(const ipc::QuantizeParams& params,
                                  const std::function<void(ipc::ProgressEvent&&)>& on_progress,
                                  const std::stop_token& stop) {
  JobNotes notes(fmt::format("{} as {} in {}", params.model, params.format, params.output));
  log_info("quantizing", {{"model", params.model}, {"format", params.format}});
  try {
    const auto files =
        params.model == kDemoModel ? open_demo_model() : open_model_files(params.model);
    const QuantizeOptions options = options_of(params);
    const QuantizeResult result =
        quantize_model({.files = *files,
                        .options = options,
                        .backend = find_backend("cpu"),
                        .on_progress =
                            [&](const QuantizeProgress& progress) {
                              notes.update(progress);
                              on_progress({.phase = progress.phase,
                                           .done = progress.layer,
                                           .total = progress.num_layers,
                                           .seconds = progress.seconds,
                                           .seconds_left = progress.seconds_left});
                            },
                        .stop = stop});
    const std::string summary = fmt::format(
        "perplexity {:.4f}, source {:.4f}; mean KL {:.5f}", result.fidelity.changed_perplexity,
        result.fidelity.source_perplexity, result.fidelity.mean_kl);
    log_info("quantized",
             {{"model", params.model}, {"folder", params.output}, {"result", summary}});
    notes.end("done", summary);
    return ipc::to_json(report_of(result));
  } catch (const std::exception& error) {
    const bool cancelled = error_of(error).code() == Code::kCancelled;
    log_info("not quantized", {{"model", params.model}, {"error", error.what()}});
    notes.end(cancelled ? "cancelled" : "failed", error.what());
    throw;
  }
}

QuantizeJobs::~QuantizeJobs() {
  stop_all();
}

void QuantizeJobs::start(uint64_t session, const ipc::QuantizeParams& params) {
  if (is_stopping_) throw Error(Code::kOverloaded, "the daemon is stopping");
  for (const Job& job : jobs_) {
    if (job.is_running) {
      throw Error(Code::kOverloaded,
                  "the daemon is quantizing another model; wait until that is done, or cancel it");
    }
  }
  jobs_.remove_if([](const Job& job) { return job.is_over.load(); });
  Job& job = jobs_.emplace_back();
  post(outbox_, {session, AttachedJob{job.stop}});
  try {
    job.thread = std::jthread([this, &job, session, params] {
      run(job, session, params);
      job.is_over = true;
    });
  } catch (const std::system_error& error) {
    jobs_.pop_back();
    throw Error(Code::kOutOfMemory, fmt::format("can't start a thread for it: {}", error.what()));
  }
}

void QuantizeJobs::stop_all() {
  is_stopping_ = true;
  for (const Job& job : jobs_) job.stop->request_stop();
}

void QuantizeJobs::run(Job& job, uint64_t session, const ipc::QuantizeParams& params) {
  lower_priority(kLowestPriority);
  const auto on_progress = [&](ipc::ProgressEvent&& event) {
    post(outbox_, {session, std::move(event)});
  };
  Outgoing last{.session = session, .message = Error(Code::kInternal, "")};
  try {
    last.message = work_(params, on_progress, job.stop->get_token());
  } catch (const Error& error) {
    const bool is_ours = error.code() == Code::kCancelled && is_stopping_;
    last.message = is_ours ? Error(Code::kCancelled, "the daemon is stopping") : error;
  } catch (const std::bad_alloc&) {
    last.message = Error(Code::kOutOfMemory, "the daemon has no memory left for this");
  } catch (const std::exception& error) {
    last.message = Error(Code::kInternal, error.what());
  }
  job.is_running = false;  // before the client can know, who may ask for the next one at once
  post(outbox_, std::move(last));
}

}  // namespace tgi::daemon
