#include "daemon/quantize_jobs.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <optional>

#include "base/log.h"
#include "base/store/store.h"
#include "engine/quantize/quantizer.h"
#include "engine/runtime/backend_loader.h"
#include "engine/runtime/demo_model.h"

namespace tgi {
namespace {

constexpr int kLowestPriority = 19;

// What the store is told. It is an index: a job goes on without it.
class JobNotes {
 public:
  explicit JobNotes(const std::string& subject) {
    try {
      store_ = Store::open();
      if (store_->is_read_only()) {
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
    log_warn("the store does not hear of this job", {{"error", error.what()}});
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

QuantizeJobs::~QuantizeJobs() {
  stop_all();
}

void QuantizeJobs::start(uint64_t session, const ipc::QuantizeParams& params) {
  if (is_stopping_) throw Error(Code::kOverloaded, "the daemon is stopping");
  if (is_running_) {
    throw Error(Code::kOverloaded,
                "the daemon is quantizing another model; wait until that is done, or cancel it");
  }
  is_running_ = true;
  stop_ = std::make_shared<std::stop_source>();
  post(outbox_, {session, AttachedJob{stop_}});
  // The one before has ended, or is about to.
  thread_ = std::jthread([this, session, params, stop = stop_->get_token()] {
    run(session, params, stop);
    is_running_ = false;
  });
}

void QuantizeJobs::stop_all() {
  is_stopping_ = true;
  if (stop_) stop_->request_stop();
}

void QuantizeJobs::run(uint64_t session, const ipc::QuantizeParams& params, std::stop_token stop) {
  // Of this thread and of those that it makes.
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLowestPriority);
  JobNotes notes(fmt::format("{} as {} in {}", params.model, params.format, params.output));
  log_info("quantizing", {{"model", params.model}, {"format", params.format}});
  const auto fail = [&](const Error& error) {
    const bool cancelled = error.code() == Code::kCancelled;
    log_info("not quantized", {{"model", params.model}, {"error", error.what()}});
    notes.end(cancelled ? "cancelled" : "failed", error.what());
    is_running_ = false;
    post(outbox_,
         {session,
          cancelled && is_stopping_ ? Error(Code::kCancelled, "the daemon is stopping") : error});
  };
  try {
    const auto files = params.model == kDemoModel ? open_demo_model() : open_folder(params.model);
    const QuantizeOptions options = options_of(params);
    const QuantizeResult result = quantize_model(
        {.files = *files,
         .options = options,
         .backend = find_backend("cpu"),
         .on_progress =
             [&](const QuantizeProgress& progress) {
               notes.update(progress);
               post(outbox_, {session, ipc::ProgressEvent{.phase = progress.phase,
                                                          .done = progress.layer,
                                                          .total = progress.num_layers,
                                                          .seconds = progress.seconds,
                                                          .seconds_left = progress.seconds_left}});
             },
         .stop = std::move(stop)});
    const std::string summary = fmt::format(
        "perplexity {:.4f}, source {:.4f}; mean KL {:.5f}", result.fidelity.changed_perplexity,
        result.fidelity.source_perplexity, result.fidelity.mean_kl);
    log_info("quantized",
             {{"model", params.model}, {"folder", params.output}, {"result", summary}});
    notes.end("done", summary);
    is_running_ = false;
    post(outbox_, {session, ipc::to_json(report_of(result))});
  } catch (const Error& error) {
    fail(error);
  } catch (const std::bad_alloc&) {
    fail(Error(Code::kOutOfMemory, "the daemon has no memory left for this"));
  } catch (const std::exception& error) {
    fail(Error(Code::kInternal, error.what()));
  }
}

}  // namespace tgi
