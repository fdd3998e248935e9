// tgi generate: one answer for one prompt, or for each line of a file.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "cmd/adapter_choice.h"
#include "cmd/guide_flags.h"
#include "cmd/line_input.h"
#include "cmd/sampling_flags.h"
#include "cmd/session.h"
#include "ipc/protocol.h"

namespace tgi {

struct GenerateFlags {
  std::optional<std::string> prompt;
  std::optional<std::string> file;
  bool lines = false;
  int parallel = 128;
  bool stream = false;
  bool json = false;
  bool details = false;
  bool chat = false;
  bool raw = false;
  ReasoningFlags reasoning;
  std::optional<std::string> system;
  ModelFlags model;
  std::string adapter;  // empty: none
  SamplingFlags sampling;
  GuideFlags guide;
};

void add_generate_flags(CLI::App& app, GenerateFlags& flags);
int run_generate(const GenerateFlags& flags, const CommonFlags& common);

// --- shared with generate_lines.cc

// What all prompts of a run share: made before the first is asked.
ipc::GenerateParams make_params(const GenerateFlags& flags);

// Throws kInvalidArgument with the byte offset when the prompt is not UTF-8.
ipc::GenerateRequest make_request(const GenerateFlags& flags,
                                  const ipc::GenerateParams& params,
                                  const std::string& prompt);

// REQUIRES: the session was prepared.
std::optional<AdapterChoice> choose_adapter(Session& session, const GenerateFlags& flags);

// --lines: up to flags.parallel prompts at once, answers in the order of the lines. The exit status
// of the first line that could not be answered.
int run_generate_lines(const GenerateFlags& flags,
                       const ipc::GenerateParams& params,
                       LineInput input,
                       Session& session);

// The prompt of the argument, of --file, or of standard input less one newline at its end; the same
// by lines.
std::string read_prompt(const GenerateFlags& flags);
LineInput open_lines(const GenerateFlags& flags);

// Asks for the one answer and writes it. Returns the exit status.
int answer_prompt(const GenerateFlags& flags,
                  const ipc::GenerateParams& params,
                  const std::string& prompt,
                  Session& session);

// What --verbose says of an answer.
std::string describe_usage(const ipc::DoneEvent& done);

}  // namespace tgi
