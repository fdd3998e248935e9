#include "cmd/tokenize.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "base/error.h"
#include "base/utf8.h"
#include "cmd/chat_tools.h"
#include "cmd/conversation.h"
#include "cmd/output.h"
#include "ipc/detokenize.h"

namespace tgi {
namespace {

using ipc::OrderedJson;

// An argument as it stands, else a file or standard input less the newline at its end.
std::string text_of(const std::optional<std::string>& text,
                    const std::optional<std::string>& file) {
  if (text && file) throw UsageError("a text and --file were both given; give one of them");
  std::string out = text && *text != "-" ? *text : "";
  if (!text || *text == "-") {
    if (!file && !text && ::isatty(STDIN_FILENO) == 1) {
      throw UsageError("no text: give one, or --file FILE, or pipe it in");
    }
    out = read_document(file.value_or("-"));
    if (out.ends_with('\n')) out.pop_back();
  }
  if (const size_t valid = valid_utf8_prefix(out); valid != out.size()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("the text is not valid UTF-8 at its byte {}", valid));
  }
  return out;
}

int32_t to_id(const std::string& word) {
  int32_t id = -1;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (problem != std::errc() || end != word.data() + word.size() || id < 0) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("expected the id of a token, a whole number from 0 on, as `tgi tokenize "
                    "--ids` writes them, got {}",
                    word));
  }
  return id;
}

}  // namespace

void add_tokenize_flags(CLI::App& app, TokenizeFlags& flags) {
  app.footer(
      "A line for each token: its id, and its text as a JSON string. One newline at the end of a "
      "text from --file or standard input is taken off.");
  app.add_option("text", flags.text, "the text; - or nothing reads it from standard input")
      ->type_name("TEXT");
  app.add_option("-f,--file", flags.file, "read the text from this file")->type_name("FILE");
  app.add_flag("--ids", flags.ids, "write the ids alone, on one line");
  app.add_flag("--no-special", flags.no_special,
               "without the tokens that the model wants around a prompt");
  app.add_flag("--json", flags.json, "write what the daemon says, as one JSON object");
  add_model_flags(app, flags.model);
}

int run_tokenize(const TokenizeFlags& flags, const CommonFlags& common) {
  if (flags.ids && flags.json) throw UsageError("--ids and --json can't go together");
  ipc::TokenizeParams params;
  params.prompt = text_of(flags.text, flags.file);
  params.add_special = !flags.no_special;
  Session session(common);
  choose_model(session, flags.model);
  session.prepare();
  const ipc::TokenizeResult result = ask_tokens(session, params);
  std::string out;
  if (flags.json) out = ipc::to_json(result).dump();
  for (const ipc::TokenInfo& token : result.tokens) {
    if (flags.json) break;
    if (flags.ids) {
      out += fmt::format("{}{}", out.empty() ? "" : " ", token.id);
      continue;
    }
    out += fmt::format(
        "{:>8} {}\n", token.id,
        OrderedJson(token.text).dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  }
  session.out().write(out);
  session.out().end_line();
  return 0;
}

void add_detokenize_flags(CLI::App& app, DetokenizeFlags& flags) {
  app.footer("`tgi tokenize --ids --no-special TEXT | tgi detokenize` gives the text back.");
  app.add_option("ids", flags.ids,
                 "ids of tokens; without any they are read from standard input, parted by blanks "
                 "or commas")
      ->type_name("ID");
  add_model_flags(app, flags.model);
}

int run_detokenize(const DetokenizeFlags& flags, const CommonFlags& common) {
  std::string words;
  if (flags.ids.empty()) words = text_of(std::nullopt, std::nullopt);
  for (const std::string& word : flags.ids) words += word + " ";
  ipc::DetokenizeParams params;
  constexpr std::string_view kBlanks = " \t\r\n,[]";
  for (size_t begin = 0; (begin = words.find_first_not_of(kBlanks, begin)) != std::string::npos;) {
    const size_t end = std::min(words.find_first_of(kBlanks, begin), words.size());
    params.ids.push_back(to_id(words.substr(begin, end - begin)));
    begin = end;
  }
  Session session(common);
  choose_model(session, flags.model);
  session.prepare();
  params.model = session.model_name();
  session.out().write(ipc::detokenize_result_from_json(
                          session.client().call(ipc::kDetokenize, ipc::to_json(params)))
                          .text);
  session.out().end_line();
  return 0;
}

void add_render_flags(CLI::App& app, RenderFlags& flags) {
  app.footer(
      "Writes the text that the model reads for a chat: its template around the messages, with the "
      "tools, up to where the answer begins. Nothing is added to it, no newline either.");
  app.add_option("message", flags.message, "what the user says")->type_name("TEXT");
  app.add_option("-f,--file", flags.file,
                 "the messages instead: a file as /save writes it, or a JSON list; - for standard "
                 "input")
      ->type_name("FILE");
  app.add_option("--system", flags.system, "the system message")->type_name("TEXT");
  app.add_option("--tools", flags.tools, "the tools, as `tgi chat` takes them")->type_name("FILE");
  add_model_flags(app, flags.model);
}

int run_render(const RenderFlags& flags, const CommonFlags& common) {
  if (flags.message.has_value() == flags.file.has_value()) {
    throw UsageError("give either a message or --file FILE");
  }
  Conversation conversation;
  if (flags.file) conversation.load(*flags.file);
  if (flags.message) conversation.add("user", text_of(flags.message, std::nullopt));
  if (flags.system) conversation.set_system(*flags.system);
  ipc::TokenizeParams params;
  params.messages = conversation.messages();
  if (flags.tools) params.tools = read_tools(*flags.tools);
  Session session(common);
  choose_model(session, flags.model);
  session.prepare();
  session.out().write(ask_tokens(session, params).text);
  return 0;
}

}  // namespace tgi
