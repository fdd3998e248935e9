#include "cmd/generate.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/utf8.h"
#include "cmd/answer_writer.h"
#include "cmd/markdown.h"
#include "cmd/output.h"
#include "ipc/line_socket.h"

namespace tgi {
namespace {

using ipc::OrderedJson;

void check_flags(const GenerateFlags& flags) {
  if (flags.prompt && flags.file) {
    throw UsageError("a prompt and --file were both given; give one of them");
  }
  const bool prompt_is_piped =
      flags.file == "-" || (!flags.file && flags.prompt.value_or("-") == "-");
  if (flags.guide.reads_standard_input() && prompt_is_piped) {
    throw UsageError(
        "the prompt and the form of the answer can't both come from standard input: give the "
        "prompt "
        "as an argument or with --file");
  }
  if (flags.system && !flags.chat) throw UsageError("--system only goes with --chat");
  if (flags.reasoning.are_given() && !flags.chat) {
    throw UsageError("--reasoning-effort and --max-reasoning-tokens only go with --chat");
  }
  if (flags.lines && flags.details && !flags.json) {
    throw UsageError("--lines with --details needs --json: there is no table for several answers");
  }
  if (flags.lines && flags.guide.flexible_whitespace && !flags.json) {
    throw UsageError(
        "--lines with --flexible-whitespace needs --json: an answer would take several lines");
  }
  for (const char* field : {"top_n_tokens", "prompt_logprobs"}) {
    if (flags.sampling.params.contains(field) && !flags.json && !flags.details) {
      throw UsageError(
          "--top-n-tokens and --prompt-logprobs are shown by --details or --json; give one of "
          "them");
    }
  }
  if (flags.lines && flags.stream) {
    throw UsageError(
        "--lines and --stream can't go together: the answers of several prompts would mix");
  }
  if (flags.stream && flags.sampling.params.value("best_of", uint64_t{1}) > 1) {
    throw UsageError(
        "--best-of and --stream can't go together: which answer is kept is known at the end only");
  }
}

// Where somebody watches, unless what is wanted is known at the end only.
bool streams_by_itself(const GenerateFlags& flags, const Output& out) {
  return out.is_terminal() && !flags.json &&
         flags.sampling.params.value("best_of", uint64_t{1}) <= 1;
}

std::string shown(const std::string& text) {
  return OrderedJson(text).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string token_row(const ipc::TokenInfo& token) {
  const std::string logprob =
      token.logprob ? fmt::format("{:9.4f}", *token.logprob) : std::string(9, ' ');
  return fmt::format("{:>8} {} {}{}", token.id, logprob, shown(token.text),
                     token.special ? " special" : "");
}

void say_details(const ipc::DoneEvent& done) {
  if (!done.prompt_tokens.empty()) Session::say("prompt: id, logprob, text");
  for (const ipc::TokenInfo& token : done.prompt_tokens) Session::say(token_row(token));
  Session::say("answer: id, logprob, text");
  const auto& tokens = done.best.tokens;
  const auto& top_tokens = done.best.top_tokens;
  for (size_t i = 0; i < tokens.size(); ++i) {
    Session::say(token_row(tokens[i]));
    if (i >= top_tokens.size()) continue;
    for (const ipc::TokenInfo& token : top_tokens[i]) Session::say("    " + token_row(token));
  }
}

// The text goes out as it comes. Without --stream it is kept back until the end, but is there when
// Ctrl-C comes.
ipc::DoneEvent generate_text(const GenerateFlags& flags,
                             ipc::GenerateRequest request,
                             Session& session) {
  Output& out = session.out();
  request.stream = flags.stream || request.params.best_of == 1;
  std::string text;
  const auto write = [&](const std::string& whole) {
    out.write(out.is_terminal() ? without_controls(whole) : whole);
  };
  AnswerWriter writer(out, flags.chat && !flags.raw);
  try {
    ipc::DoneEvent done = session.client().generate(request, [&](const ipc::TokenEvent& event) {
      flags.stream ? writer.write(event) : static_cast<void>(text += event.text);
    });
    writer.end();
    if (!flags.stream) write(done.best.text);
    out.is_terminal() ? out.end_line() : out.write("\n");
    return done;
  } catch (const ipc::Stopped& stopped) {
    if (stopped.why() == ipc::Stopped::Why::kCancelFd) {
      session.interrupt().take();  // else it would stop this writing too
      writer.end();
      write(text);
      out.end_line();
    }
    throw;
  } catch (const Error&) {
    writer.end();
    out.end_line();  // what was streamed stays; nothing that looks like a whole answer is added
    throw;
  }
}

ipc::DoneEvent generate_json(const GenerateFlags& flags,
                             ipc::GenerateRequest request,
                             Session& session) {
  Output& out = session.out();
  request.stream = flags.stream;
  const ipc::DoneEvent done = session.client().generate(request, [&](const ipc::TokenEvent& event) {
    out.write(ipc::encode_token_event(event) + "\n");
  });
  out.write((flags.stream ? ipc::encode_done_event(done) : ipc::to_json(done).dump()) + "\n");
  return done;
}

}  // namespace

void add_generate_flags(CLI::App& app, GenerateFlags& flags) {
  app.footer(
      "Standard output gets the answer and nothing else; notices, errors and the numbers of "
      "--verbose and --details go to stderr. On a terminal a newline is added where the "
      "answer ends without one; into a pipe or a file the answer is followed by exactly one "
      "newline.\n\n"
      "One newline at the end of a prompt from --file or standard input is taken off; every "
      "other byte counts. With --lines each line is a prompt as it stands. A line that can "
      "not be answered is reported on stderr with its number, the others go on, and the "
      "exit status is that of the first one. With --json every line has its object, with the "
      "line's index, counted from 0; that of a line without an answer is "
      "{\"index\":N,\"error\":{\"code\":CODE,\"message\":TEXT}} with a code as in the list of exit "
      "statuses.\n\n"
      "Ctrl-C cancels the request in the daemon, writes what there is of the answer, and "
      "ends with exit status 130. When the reader of the output goes away, as in a pipe "
      "into head, the request is cancelled as well and the exit status is 0.");
  app.add_option("prompt", flags.prompt,
                 "the prompt; - or nothing reads it from standard input, less one newline at its "
                 "end")
      ->type_name("PROMPT");
  app.add_option("-f,--file", flags.file,
                 "read the prompt from this file, less one newline at its end")
      ->type_name("FILE");
  CLI::Option* lines =
      app.add_flag("--lines", flags.lines,
                   "each line of the input is a prompt; the answers come in the same order");
  app.add_option("--parallel", flags.parallel,
                 "with --lines: at most this many prompts at once; default 128")
      ->type_name("N")
      ->needs(lines)
      ->check(CLI::Range(1, 4096));
  app.add_flag("--stream", flags.stream,
               "write the answer as it is generated; on a terminal that is so without it");
  app.add_flag("--json", flags.json,
               "write one JSON object per answer; with --stream one per token and one at the end");
  app.add_flag("--details", flags.details,
               "every token with its log probability: in the JSON, else as a table on stderr");
  app.add_flag("--chat", flags.chat,
               "the prompt is a user's message; the model's chat template is put around it");
  app.add_option("--system", flags.system, "with --chat: the system message")->type_name("TEXT");
  app.add_flag("--raw", flags.raw,
               "on a terminal write the answer to a chat as it is, no markdown rendered");
  add_reasoning_flags(app, flags.reasoning);
  add_model_flags(app, flags.model);
  add_adapter_flag(app, flags.adapter);
  add_sampling_flags(app, flags.sampling, /*for_chat=*/false);
  add_guide_flags(app, flags.guide);
}

ipc::GenerateParams make_params(const GenerateFlags& flags) {
  ipc::GenerateParams out = to_params(flags.sampling);
  out.details = flags.details;
  out.guide = to_guide(flags.guide);
  return out;
}

ipc::GenerateRequest make_request(const GenerateFlags& flags,
                                  const ipc::GenerateParams& params,
                                  const std::string& prompt) {
  if (const size_t valid = valid_utf8_prefix(prompt); valid != prompt.size()) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("the prompt is not valid UTF-8 at its byte {} (of {})", valid, prompt.size()));
  }
  ipc::GenerateRequest request;
  request.params = params;
  if (!flags.chat) {
    request.prompt = prompt;
    return request;
  }
  OrderedJson messages = OrderedJson::array();
  if (flags.system) messages.push_back({{"role", "system"}, {"content", *flags.system}});
  messages.push_back({{"role", "user"}, {"content", prompt}});
  request.messages = std::move(messages);
  request.parse_answer = true;
  request.reasoning_effort = flags.reasoning.effort;
  request.params.max_reasoning_tokens = flags.reasoning.max_tokens;
  return request;
}

std::optional<AdapterChoice> choose_adapter(Session& session, const GenerateFlags& flags) {
  if (flags.adapter.empty()) return std::nullopt;
  return choose_adapter(session, flags.adapter, flags.model.offline);
}

// Of a prompt that is not in the argument.
static std::string prompt_file(const GenerateFlags& flags) {
  if (!flags.file && !flags.prompt && ::isatty(STDIN_FILENO) == 1) {
    throw UsageError("no prompt: give one, or - and type it, or --file FILE, or pipe it in");
  }
  return flags.file.value_or("-");
}

std::string read_prompt(const GenerateFlags& flags) {
  if (flags.prompt && *flags.prompt != "-") return *flags.prompt;
  std::string text = read_document(prompt_file(flags));
  // The newline that ends a text file or the output of echo is not part of the prompt.
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

LineInput open_lines(const GenerateFlags& flags) {
  if (flags.prompt && *flags.prompt != "-") return LineInput::of_text(*flags.prompt);
  return LineInput(prompt_file(flags));
}

std::string describe_usage(const ipc::DoneEvent& done) {
  const int64_t num_decoded = done.best.num_generated_tokens - 1;
  const double decode_ms = done.timings.decode_ms;
  const std::string speed =
      num_decoded > 0 && decode_ms > 0
          ? fmt::format(", {:.1f} tokens/s", 1000 * static_cast<double>(num_decoded) / decode_ms)
          : "";
  return fmt::format(
      "prompt {} tokens ({} cached{}), generated {} ({}), first token after {:.1f} ms{}",
      done.num_prompt_tokens, done.num_cached_tokens,
      done.num_truncated_tokens > 0 ? fmt::format(", {} cut off", done.num_truncated_tokens) : "",
      done.best.num_generated_tokens, ipc::finish_reason_name(done.best.finish_reason),
      done.timings.time_to_first_token_ms, speed);
}

int run_generate(const GenerateFlags& flags, const CommonFlags& common) {
  check_flags(flags);
  if (has_idle_seed(flags.sampling)) Session::say(kIdleSeed);
  // While Ctrl-C still ends the program by itself.
  const ipc::GenerateParams params = make_params(flags);
  if (flags.lines) {
    LineInput input = open_lines(flags);
    Session session(common);
    choose_model(session, flags.model);
    return run_generate_lines(flags, params, std::move(input), session);
  }
  const std::string prompt = read_prompt(flags);
  Session session(common);
  choose_model(session, flags.model);
  GenerateFlags chosen = flags;
  chosen.stream = flags.stream || streams_by_itself(flags, session.out());
  return answer_prompt(chosen, params, prompt, session);
}

int answer_prompt(const GenerateFlags& flags,
                  const ipc::GenerateParams& params,
                  const std::string& prompt,
                  Session& session) {
  ipc::GenerateRequest request = make_request(flags, params, prompt);
  session.prepare();
  request.model = session.model_name();
  set_adapter(choose_adapter(session, flags), request);
  const ipc::DoneEvent done =
      flags.json ? generate_json(flags, request, session) : generate_text(flags, request, session);
  if (flags.details && !flags.json) say_details(done);
  session.say_verbose(describe_usage(done));
  if (done.seed) session.say_verbose(fmt::format("seed {}", *done.seed));
  return 0;
}

}  // namespace tgi
