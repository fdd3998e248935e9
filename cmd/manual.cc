#include "cmd/manual.h"

#include <fmt/format.h>

#include <array>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"

namespace tgi {
namespace {

struct ExitRow {
  int status;
  std::string_view meaning;
};

constexpr int exit_of(Code code) {
  return code_row(code).exit_status;
}

// docs/exit_codes.md says the same at more length.
constexpr std::array kExitRows = {
    ExitRow{0, "done; also when the reader of the output went away before the end"},
    ExitRow{exit_of(Code::kInternal), "a bug of tgi or tgid; of tgi doctor: something failed"},
    ExitRow{2, "the command line is wrong"},
    ExitRow{exit_of(Code::kInvalidArgument), "the request or a setting is wrong"},
    ExitRow{exit_of(Code::kNotFound), "a file is not there, or no model is loaded"},
    ExitRow{exit_of(Code::kUnsupported), "understood, but this build or device can't do it"},
    ExitRow{exit_of(Code::kOutOfMemory), "not enough memory or disk"},
    ExitRow{exit_of(Code::kOverloaded), "the daemon is busy or is stopping: try again later"},
    ExitRow{exit_of(Code::kUnavailable), "the daemon can't be reached or went away"},
    ExitRow{exit_of(Code::kDeviceLost), "the accelerator failed"},
    ExitRow{exit_of(Code::kForbidden), "this user may use the daemon, but not manage it"},
    ExitRow{exit_of(Code::kNotFinite), "the model's logits are not finite"},
    ExitRow{exit_of(Code::kAdapter), "the adapter is not there or can't be used"},
    ExitRow{exit_of(Code::kCancelled), "stopped by Ctrl-C or cancelled"},
};

struct TermRow {
  std::string_view term;
  std::string_view meaning;
};

constexpr std::array kEnvironment = {
    TermRow{"TGI_SOCKET", "the daemon's socket, where --socket is not given"},
    TermRow{"TGI_DAEMON",
            "the program to start when no daemon is running; default: tgid beside tgi, else on "
            "PATH"},
    TermRow{"TGI_PLUGIN_DIR", "where libtgi-cuda.so is looked for first"},
    TermRow{"TGI_CONFIG",
            "the file of settings; default $XDG_CONFIG_HOME/tgi/config.toml, else "
            "~/.config/tgi/config.toml"},
    TermRow{"XDG_RUNTIME_DIR", "the socket lies in tgi/tgid.sock below it"},
    TermRow{"XDG_STATE_HOME",
            "the chat's history, the store and the log of a daemon started by a command lie in "
            "tgi/ below it; default ~/.local/state"},
    TermRow{"NO_COLOR", "when it is set and not empty, nothing is coloured"},
    TermRow{"CLICOLOR", "0: nothing is coloured"},
    TermRow{"CLICOLOR_FORCE", "not 0: coloured although the output is no terminal"},
};

constexpr std::array kHubEnvironment = {
    TermRow{"HF_HOME", "the folder of the hub's cache and token; default ~/.cache/huggingface"},
    TermRow{"HF_HUB_CACHE", "the cache alone; default hub in HF_HOME"},
    TermRow{"HF_ENDPOINT", "the hub's address; default https://huggingface.co"},
    TermRow{"HF_TOKEN", "the access token; default what the file token in HF_HOME has"},
    TermRow{"HF_HUB_OFFLINE", "1: nothing is ever downloaded"},
    TermRow{"https_proxy", "the proxy, as curl takes it; no_proxy the hosts without it"},
};

constexpr std::array kFiles = {
    TermRow{"$XDG_RUNTIME_DIR/tgi/tgid.sock",
            "the daemon's socket; without the variable "
            "/tmp/tgi-UID/tgid.sock"},
    TermRow{"~/.local/state/tgi/tgid.log", "what a daemon says that a command has started"},
    TermRow{"~/.local/state/tgi/chat_history", "lines typed in tgi chat"},
    TermRow{"~/.cache/huggingface/hub", "downloaded models, in the layout of huggingface_hub"},
};

struct CommandRow {
  std::string_view name;
  std::string_view common;  // flags, see common_flags()
  std::array<TermRow, 4> examples;
  bool uses_hub = false;
  std::string_view see_also = {};  // pages parted by spaces, beside tgi(1) and tgid(8)
};

constexpr std::array kCommandRows = {
    CommandRow{
        "generate",
        "model file lines stream json chat system max-new-tokens temperature top-p seed stop",
        {TermRow{"tgi generate 'Once upon a time' --stream", "Tell a story as it is generated"},
         TermRow{"tgi generate --chat 'Why is the sky blue?'", "Ask a chat model"},
         TermRow{"tgi generate --lines --json <prompts.txt >answers.jsonl",
                 "Answer each line of a file, all in one batch"},
         TermRow{"tgi generate -f prompt.txt --temperature 0.8 --seed 7",
                 "Sample, and be able to repeat it"}}},
    CommandRow{"chat",
               "model system load stats raw max-new-tokens temperature top-p seed",
               {TermRow{"tgi chat --system 'You are a pirate.'", "Talk"},
                TermRow{"tgi chat --load talk.json", "Go on with a conversation"},
                TermRow{"printf 'Hello\\nAnd you?\\n' | tgi chat", "Two turns from a pipe"},
                {}}},
    CommandRow{
        "embed",
        "file format output prompt-name dimensions truncate",
        {TermRow{"tgi embed -m ~/models/bge-small-en-v1.5 'some text'", "The vector of a text"},
         TermRow{"tgi embed --format npy -o vectors.npy <lines.txt", "An array of NumPy"},
         TermRow{"tgi embed --prompt-name query 'what is a panda?' | jq '.embedding[:4]'",
                 "With one of the model's own prompts"},
         {}}},
    CommandRow{"rerank",
               "file top json truncate",
               {TermRow{"ls | tgi rerank -m ~/models/bge-reranker-base 'meeting notes' --top 5",
                        "What fits best"},
                TermRow{"tgi rerank --json 'capital of France' <passages.txt", "For a script"},
                {},
                {}}},
    CommandRow{"serve",
               "http quantize dtype num-shard max-concurrent-requests max-input-tokens "
               "max-total-tokens api-key json-output",
               {TermRow{"tgi serve /models/Llama-3.1-8B --http :3000", "Serve a folder"},
                TermRow{"tgi serve Qwen/Qwen2.5-0.5B-Instruct", "Serve a model of the hub"},
                TermRow{"API_KEY=secret tgi serve demo --http 0.0.0.0:3000",
                        "Let other machines in, with a key"},
                {}},
               true,
               "tgi-load(1)"},
    CommandRow{"ps",
               "",
               {TermRow{"tgi ps", "What is loaded and what runs"},
                TermRow{"tgi ps --json | jq .model.num_running", "One number of it"},
                TermRow{"tgi ps -w", "Watch it"},
                {}}},
    CommandRow{"adapters",
               "",
               {TermRow{"tgi adapters", "What is loaded, and how much it is used"},
                TermRow{"tgi adapters --load ./my-lora --name mine", "Check one and keep it"},
                TermRow{"tgi generate --adapter mine 'Once upon a time'", "Answer by it"},
                {}},
               true},
    CommandRow{"load",
               "revision offline dtype quantize kv-cache-dtype kv-cache-memory backend",
               {TermRow{"tgi load ~/models/Qwen2.5-0.5B-Instruct", "A folder"},
                TermRow{"tgi load Qwen/Qwen2.5-0.5B-Instruct", "A model of the hub"},
                TermRow{"tgi load ~/models/Llama-3.1-8B --quantize int4",
                        "A quarter of the memory, faster decoding"},
                TermRow{"tgi load demo", "The built-in toy"}},
               true},
    CommandRow{
        "unload", "", {TermRow{"tgi unload", "Free the memory, keep the daemon"}, {}, {}, {}}},
    CommandRow{"stop", "", {TermRow{"tgi stop", "Finish what runs, then end"}, {}, {}, {}}},
    CommandRow{"bench",
               "batch-size sequence-length decode-length runs url serving concurrency rate trace "
               "json",
               {TermRow{"tgi bench --batch-sizes 1,4,16", "Prefill and decode of the daemon"},
                TermRow{"tgi bench --url http://host:8000 --rate 4",
                        "Load a server with Poisson arrivals"},
                TermRow{"tgi bench --serving --trace trace.csv", "Replay a recorded load"},
                {}}},
    CommandRow{"download-weights",
               "",
               {TermRow{"tgi download-weights Qwen/Qwen2.5-0.5B-Instruct", "Fetch a model"},
                TermRow{"tgi download-weights ORG/NAME@v1.0 --include '*.json'",
                        "Some files of a revision"},
                TermRow{"HF_TOKEN=... tgi download-weights ORG/GATED", "A gated model"},
                {}},
               true,
               "tgi-ls(1)"},
    CommandRow{"ls",
               "",
               {TermRow{"tgi ls", "What is installed"},
                TermRow{"tgi ls --quiet", "The names alone, for scripts"},
                {},
                {}},
               true,
               "tgi-show(1) tgi-rm(1)"},
    CommandRow{"show",
               "",
               {TermRow{"tgi show Qwen/Qwen2.5-0.5B-Instruct",
                        "Its shape, its licence, and the memory it would need"},
                TermRow{"tgi show ./model", "The same for a folder"},
                {},
                {}},
               true,
               "tgi-ls(1)"},
    CommandRow{"rm",
               "",
               {TermRow{"tgi rm Qwen/Qwen2.5-0.5B-Instruct", "Delete its files"}, {}, {}, {}},
               true,
               "tgi-ls(1)"},
    CommandRow{"quantize",
               "",
               {TermRow{"tgi quantize ./model ./model-int4 --format int4", "Round to 4 bits"},
                TermRow{"tgi quantize ./model ./model-gptq --format gptq --calibration text.txt",
                        "GPTQ, calibrated on a text of yours"},
                {},
                {}},
               true,
               "tgi-load(1)"},
    CommandRow{"run",
               "",
               {TermRow{"tgi run demo", "Chat"},
                TermRow{"tgi run demo 'Why is the sky blue?'", "One answer"},
                TermRow{"tgi run ORG/NAME:Q4_K_M <question.txt", "From a file, or a pipe"},
                {}},
               true,
               "tgi-chat(1) tgi-generate(1)"},
    CommandRow{"create",
               "",
               {TermRow{"tgi create mario -f Modelfile", "Keep a preset"},
                TermRow{"tgi run mario 'Who are you?'", "Ask it"},
                TermRow{"tgi show --modelfile mario | tgi create luigi -f -", "Copy it"},
                {}},
               true,
               "tgi-show(1) tgi-ls(1) tgi-rm(1)"},
    CommandRow{"pull",
               "",
               {TermRow{"tgi pull Qwen/Qwen2.5-0.5B-Instruct", "Fetch a model"},
                TermRow{"tgi pull ORG/NAME:Q4_K_M", "A GGUF file by its quantisation"},
                {},
                {}},
               true,
               "tgi-download-weights(1)"},
    CommandRow{"tokenize",
               "",
               {TermRow{"tgi tokenize 'Once upon a time'", "Its tokens"},
                TermRow{"tgi tokenize <text.txt --ids | wc -w", "How many"},
                {},
                {}}},
    CommandRow{"detokenize", "", {TermRow{"tgi detokenize 1 2 3", "The text"}, {}, {}, {}}},
    CommandRow{"render",
               "",
               {TermRow{"tgi render 'hello' --system 'be brief'", "What the model reads"},
                TermRow{"tgi render -f talk.json", "Of a chat that was saved"},
                {},
                {}}},
    CommandRow{"logs",
               "",
               {TermRow{"tgi logs -f", "Watch"}, TermRow{"tgi logs -n 20", "The end"}, {}, {}}},
    CommandRow{"config",
               "",
               {TermRow{"tgi config list --changed", "What is not the default"},
                TermRow{"tgi config set daemon.kv-cache-memory 4GiB", "Of daemons from now on"},
                TermRow{"tgi config get max-running", "One value"},
                TermRow{"tgi config unset serve.port", "The default again"}}},
    CommandRow{"version", "", {TermRow{"tgi version", "Of the tool and the daemon"}, {}, {}, {}}},
    CommandRow{"doctor",
               "",
               {TermRow{"tgi doctor", "Look at this machine, its daemon and its model"},
                TermRow{"tgi doctor --json >report.json", "For a bug report"},
                {},
                {}}},
};

const CommandRow* find_row(std::string_view name) {
  for (const CommandRow& row : kCommandRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

template <typename Rows>
void append(std::vector<TermDoc>& terms, const Rows& rows) {
  for (const TermRow& row : rows) {
    if (!row.term.empty()) terms.push_back({std::string(row.term), std::string(row.meaning)});
  }
}

std::vector<TermDoc> exit_statuses() {
  std::vector<TermDoc> out;
  for (const ExitRow& row : kExitRows) {
    out.push_back({fmt::format("{}", row.status), std::string(row.meaning)});
  }
  return out;
}

}  // namespace

void add_manual(CommandDoc& command) {
  command.exit_statuses = exit_statuses();
  append(command.environment, kEnvironment);
  append(command.files, kFiles);
  command.see_also = {"tgi(1)"};
  if (const CommandRow* row = find_row(command.name)) {
    append(command.examples, row->examples);
    if (row->uses_hub) append(command.environment, kHubEnvironment);
    std::istringstream pages{std::string(row->see_also)};
    for (std::string page; pages >> page;) command.see_also.push_back(page);
  }
  command.see_also.emplace_back("tgid(8)");
}

std::string_view common_flags(std::string_view command) {
  const CommandRow* row = find_row(command);
  return row == nullptr ? std::string_view() : row->common;
}

ProgramDoc describe_tgi(const CLI::App& app) {
  ProgramDoc doc = describe_program(app);
  doc.program.summary = "run language models on this machine";
  append(doc.program.examples,
         std::array{TermRow{"tgi generate 'Once upon a time' --stream", "Tell a story"},
                    TermRow{"tgi serve demo --http :3000", "Serve TGI's and OpenAI's API"},
                    TermRow{"tgi chat", "Talk with the model"},
                    TermRow{"tgi doctor", "Find out what is wrong"}});
  doc.program.exit_statuses = exit_statuses();
  append(doc.program.environment, kEnvironment);
  append(doc.program.environment, kHubEnvironment);
  append(doc.program.files, kFiles);
  for (CommandDoc& command : doc.commands) {
    add_manual(command);
    doc.program.see_also.push_back(fmt::format("tgi-{}(1)", command.name));
  }
  for (const char* page : {"tgid(8)", "tgi-ipc(5)"}) doc.program.see_also.emplace_back(page);
  return doc;
}

}  // namespace tgi
