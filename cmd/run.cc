#include "cmd/run.h"

#include <unistd.h>

#include "base/error.h"
#include "cmd/chat.h"
#include "cmd/generate.h"
#include "cmd/image_paths.h"

namespace tgi {

void add_run_flags(CLI::App& app, RunFlags& flags) {
  app.footer(
      "With a prompt, or one from a pipe, it is one answer, as of `tgi generate --chat --stream`; "
      "without one on a terminal it is `tgi chat`. A model without a chat template goes on with "
      "the prompt as it stands. Those two commands have more options.");
  app.add_option("model", flags.model.model,
                 "a folder, a GGUF file, ORG/NAME[@REVISION] or ORG/NAME:QUANTISATION of the hub, "
                 "a name of `tgi ls`, or \"demo\"")
      ->type_name("MODEL")
      ->required();
  app.add_option("prompt", flags.prompt, "what to answer; - reads it from standard input")
      ->type_name("PROMPT");
  app.add_option("--system", flags.system, "the system message")->type_name("TEXT");
  app.add_flag("--raw", flags.raw, "on a terminal write answers as they are, no markdown rendered");
  app.add_flag("--offline", flags.model.offline, "download nothing");
}

int run_run(const RunFlags& flags, const CommonFlags& common) {
  if (flags.model.model.empty()) throw UsageError("expected a model, got an empty name");
  if (!flags.prompt && ::isatty(STDIN_FILENO) == 1) {
    ChatFlags chat;
    chat.model = flags.model;
    chat.system = flags.system;
    chat.raw = flags.raw;
    chat.stats = flags.stats;
    chat.slides = flags.slides;
    chat.no_save = flags.no_save;
    return run_chat(chat, common);
  }
  GenerateFlags generate;
  generate.model = flags.model;
  generate.prompt = flags.prompt;
  generate.system = flags.system;
  generate.stream = true;
  generate.raw = flags.raw;
  const std::string prompt =
      read_prompt(generate);  // while Ctrl-C still ends the program by itself
  if (flags.prompt) {
    // Not by a mark before it: there are prompts that begin with any, as a comment in a program.
    refuse_images(*flags.prompt, "write the message to standard input");
  }
  Session session(common);
  choose_model(session, flags.model);
  const ipc::Status status = session.prepare();
  generate.chat = status.model && status.model->has_chat_template;
  if (!generate.chat && flags.system) {
    throw Error(Code::kInvalidArgument,
                "this model has no chat template, so that there is no place for --system");
  }
  return answer_prompt(generate, make_params(generate), prompt, session);
}

}  // namespace tgi
