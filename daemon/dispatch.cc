#include "daemon/dispatch.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "daemon/handlers.h"
#include "daemon/request_jobs.h"

namespace tgi::daemon {
namespace {

using ipc::OrderedJson;

NoParams no_params(const OrderedJson& params) {
  if (params.is_object() && params.empty()) return {};
  if (!params.is_object()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("params: expected an object, got {}", params.type_name()));
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: unknown field; this method takes none", params.begin().key()));
}

struct MethodRow {
  std::string_view name;
  Access access;
  // Any thread: reads the parameters, and gives what is to be done on the I/O thread.
  std::function<void(Services&, const Caller&)> (*decode)(const OrderedJson& params);
};

template <auto kDecode, auto kHandle>
constexpr MethodRow method(std::string_view name, Access access) {
  using Params = decltype(kDecode(std::declval<const OrderedJson&>()));
  return {
      .name = name, .access = access, .decode = [](const OrderedJson& params) {
        return std::function<void(Services&, const Caller&)>(
            [asked = std::make_shared<const Params>(kDecode(params))](
                Services& services, const Caller& caller) { kHandle(services, caller, asked); });
      }};
}

constexpr std::array<MethodRow, 18> kMethods = {{
    method<ipc::generate_request_from_json, handle_generate>(ipc::kGenerate, Access::kUse),
    method<ipc::vector_params_from_json, handle_embed>(ipc::kEmbed, Access::kUse),
    method<ipc::vector_params_from_json, handle_classify>(ipc::kClassify, Access::kUse),
    method<no_params, handle_status>(ipc::kStatus, Access::kUse),
    method<ipc::load_params_from_json, handle_load>(ipc::kLoad, Access::kManage),
    method<ipc::keep_params_from_json, handle_keep>(ipc::kKeep, Access::kUse),
    method<ipc::unload_params_from_json, handle_unload>(ipc::kUnload, Access::kManage),
    method<no_params, handle_stop>(ipc::kStop, Access::kManage),
    method<ipc::tokenize_params_from_json, handle_tokenize>(ipc::kTokenize, Access::kUse),
    method<ipc::detokenize_params_from_json, handle_detokenize>(ipc::kDetokenize, Access::kUse),
    method<ipc::load_adapter_params_from_json, handle_load_adapter>(ipc::kLoadAdapter,
                                                                    Access::kManage),
    method<ipc::unload_adapter_params_from_json, handle_unload_adapter>(ipc::kUnloadAdapter,
                                                                        Access::kManage),
    method<ipc::model_params_from_json, handle_adapters>(ipc::kAdapters, Access::kUse),
    method<no_params, handle_metrics>(ipc::kMetrics, Access::kUse),
    // Reads any folder that the daemon's user may read.
    method<ipc::inspect_params_from_json, handle_inspect>(ipc::kInspect, Access::kManage),
    method<ipc::merge_params_from_json, handle_merge>(ipc::kMerge, Access::kManage),
    method<ipc::quantize_params_from_json, handle_quantize>(ipc::kQuantize, Access::kManage),
    // Takes memory for a second model.
    method<ipc::model_params_from_json, handle_check>(ipc::kCheck, Access::kManage),
}};

const MethodRow& find_method(const std::string& name) {
  std::string known;
  for (const MethodRow& row : kMethods) {
    if (row.name == name) return row;
    known += known.empty() ? "" : ", ";
    known += row.name;
  }
  throw Error(Code::kNotFound,
              fmt::format("method \"{}\" is not known; there are: {}", name, known));
}

// Any thread. What the client may not ask for is refused before it is looked at.
std::function<void()> decode(Services& services, const Caller& caller, const std::string& line) {
  const ipc::Request request = ipc::decode_request(line);
  const MethodRow& row = find_method(request.method);
  services.access.require(row.access, row.name, caller.client);
  return [&services, caller, act = row.decode(request.params)] {
    answering_errors(services.outbox, caller.session, [&] { act(services, caller); });
  };
}

}  // namespace

void dispatch(Services& services, const Caller& caller, std::string line) {
  if (line.size() <= kMaxInlineBytes) {
    answering_errors(services.outbox, caller.session, [&] { decode(services, caller, line)(); });
    return;
  }
  run_job(services.intake_jobs, services.outbox, caller.session,
          [&services, caller, line = std::make_shared<const std::string>(std::move(line))] {
            if (caller.ended.stop_requested()) return;
            Decoded decoded{decode(services, caller, *line)};
            if (caller.ended.stop_requested()) return;
            post(services.outbox, {caller.session, std::move(decoded)});
          });
}

}  // namespace tgi::daemon
