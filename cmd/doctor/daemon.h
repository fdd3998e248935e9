// What the running daemon says about itself and its model.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cmd/doctor/finding.h"
#include "ipc/client.h"
#include "ipc/line_socket.h"

namespace tgi::doctor {

struct DaemonReport {
  std::vector<Finding> findings;  // socket, daemon, model
  std::optional<ipc::ModelStatus> model;
};

// The line about an instruction set that failed its trial.
Finding describe_left_out(const ipc::LeftOutKernels& one);

DaemonReport look_at_daemon(const ipc::Client& client);

// Asks the daemon to compare its model with a float32 copy; that takes a while.
Finding check_model(const ipc::Client& client, const ipc::ModelStatus& model);

// What a result of `check` means for weights kept this way ("none", "int8", "int4").
Finding judge_check(const ipc::OrderedJson& result, const std::string& quantize);

}  // namespace tgi::doctor
