// What each method does, by name in the table of dispatch.cc. All run on the I/O thread, must not
// block, and answer through the outbox, now or by a job.
#pragma once

#include <memory>

#include "daemon/dispatch.h"
#include "ipc/detokenize.h"
#include "ipc/model_facts.h"
#include "ipc/quantize_job.h"
#include "ipc/vectors.h"

namespace tgi::daemon {

// What a request asks for is shared by the copies of its job (a std::function must be copyable);
// only one of them ever runs.
template <typename Params>
using Asked = std::shared_ptr<const Params>;

struct NoParams {};

// text_handlers.cc
void handle_generate(Services& services,
                     const Caller& caller,
                     const Asked<ipc::GenerateRequest>& asked);
void handle_embed(Services& services, const Caller& caller, const Asked<ipc::VectorParams>& asked);
void handle_classify(Services& services,
                     const Caller& caller,
                     const Asked<ipc::VectorParams>& asked);
void handle_tokenize(Services& services,
                     const Caller& caller,
                     const Asked<ipc::TokenizeParams>& asked);
void handle_detokenize(Services& services,
                       const Caller& caller,
                       const Asked<ipc::DetokenizeParams>& asked);

// model_handlers.cc
void handle_status(Services& services, const Caller& caller, const Asked<NoParams>& asked);
void handle_load(Services& services, const Caller& caller, const Asked<ipc::LoadParams>& asked);
void handle_keep(Services& services, const Caller& caller, const Asked<ipc::KeepParams>& asked);
void handle_unload(Services& services, const Caller& caller, const Asked<ipc::UnloadParams>& asked);
void handle_stop(Services& services, const Caller& caller, const Asked<NoParams>& asked);
void handle_load_adapter(Services& services,
                         const Caller& caller,
                         const Asked<ipc::LoadAdapterParams>& asked);
void handle_unload_adapter(Services& services,
                           const Caller& caller,
                           const Asked<ipc::UnloadAdapterParams>& asked);
void handle_adapters(Services& services,
                     const Caller& caller,
                     const Asked<ipc::ModelParams>& asked);
void handle_inspect(Services& services,
                    const Caller& caller,
                    const Asked<ipc::InspectParams>& asked);
void handle_merge(Services& services, const Caller& caller, const Asked<ipc::MergeParams>& asked);
void handle_metrics(Services& services, const Caller& caller, const Asked<NoParams>& asked);
void handle_quantize(Services& services,
                     const Caller& caller,
                     const Asked<ipc::QuantizeParams>& asked);
void handle_check(Services& services, const Caller& caller, const Asked<ipc::ModelParams>& asked);

}  // namespace tgi::daemon
