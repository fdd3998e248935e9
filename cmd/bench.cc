#include "cmd/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "cmd/bench/engine_bench.h"
#include "cmd/bench/history.h"
#include "cmd/bench/serving_bench.h"

namespace tgi {
namespace {

constexpr std::string_view kEngineGroup = "Engine options";
constexpr std::string_view kServingGroup = "Load options (with --url or --serving)";
constexpr std::string_view kHttpGroup = "Server options (with --url)";

constexpr std::string_view kFooter =
    "Without --url and --serving: random token ids from a fixed seed, without the prefix cache and "
    "without an early end. Prefill is the time until every sequence of the batch has its first "
    "token. Decode (token) is the time between two tokens of a sequence, decode (total) that from "
    "the end of prefill to the last token. Decode throughput counts the tokens between the end of "
    "prefill and the end of the first sequence.\n\n"
    "What decoding reads is steps per second times the bytes of one step: all weights once, and "
    "the "
    "KV cache of every sequence at its mean length. It is compared with threads that only read: as "
    "many as the daemon has, over as many bytes (at most 2 GiB), at their best.\n\n"
    "With them: requests at a fixed concurrency (the default), at Poisson arrivals (--rate), or as "
    "a recorded trace has them (--trace). Two short requests tell how the server counts the words "
    "that prompts are made of.\n\n"
    "While it runs, a view of the progress is drawn on stderr when that is a terminal; NO_COLOR or "
    "--quiet turns it off. Ctrl-C ends the bench with what was measured until then. What was "
    "measured to the end is kept, and --history lists it.";

CLI::Option* in_group(CLI::Option* option, std::string_view group) {
  return option->group(std::string(group));
}

void add_shared_flags(CLI::App& app, BenchFlags& flags) {
  const auto range = [](int low, int high) { return CLI::Range(low, high); };
  app.add_option("-s,--sequence-length,--prompt-length", flags.prompt_length,
                 "tokens of each prompt; default 512")
      ->type_name("N")
      ->check(range(1, 1 << 24));
  app.add_option("-d,--decode-length", flags.decode_length, "tokens of each answer; default 128")
      ->type_name("N")
      ->check(range(1, 1 << 24));
  app.add_option("-w,--warmups", flags.warmups,
                 "runs (under load: requests) before those that count; default 1")
      ->type_name("N")
      ->check(range(0, 1000));
  app.add_option("--seed", flags.seed, "seed of prompts, arrival times and draws; default 1")
      ->type_name("N");
  app.add_flag("--json", flags.json, "write one JSON object");
  app.add_flag("-q,--quiet", flags.quiet, "do not draw the progress on the terminal");
}

void add_engine_flags(CLI::App& app, BenchFlags& flags) {
  in_group(app.add_option("-b,--batch-size,--batch-sizes", flags.batch_sizes,
                          "how many requests at once, with commas between or given several times; "
                          "default 1,4,16")
               ->type_name("N,N,...")
               ->delimiter(',')
               ->allow_extra_args(false)
               ->check(CLI::Range(1, 1024)),
           kEngineGroup);
  in_group(app.add_option("-r,--runs", flags.runs, "measured runs of each batch size; default 5")
               ->type_name("N")
               ->check(CLI::Range(1, 1000)),
           kEngineGroup);
}

void add_history_flags(CLI::App& app, BenchFlags& flags) {
  app.add_flag("--history", flags.history,
               "measure nothing: list what was measured before, newest first; with --model, only "
               "that model");
  app.add_option("--limit", flags.history_limit, "benchmarks that --history lists; default 20")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000))
      ->needs("--history");
}

void add_server_flags(CLI::App& app, BenchFlags& flags) {
  app.add_option("--url", flags.url,
                 "load this server: http://HOST:PORT of TGI, vLLM, llama-server, `tgi serve`, ...")
      ->type_name("URL");
  app.add_flag("--serving", flags.serving, "load the daemon over its socket")->excludes("--url");
  const auto add = [&](const std::string& name, auto& value, const std::string& help,
                       const std::string& type) {
    return in_group(app.add_option(name, value, help)->type_name(type), kHttpGroup);
  };
  add("--api", flags.api, "what the server speaks; default openai-chat", "NAME")
      ->check(CLI::IsMember({"tgi", "openai-chat", "openai-completions"}));
  add("--model", flags.model, "the model to ask for; default: the first the server lists", "NAME");
  add("--api-key", flags.api_key,
      "sent as a bearer token; better in the environment, where other users can't see it", "KEY")
      ->envname("TGI_API_KEY");
  in_group(app.add_flag("--insecure", flags.insecure, "do not check the server's certificate"),
           kHttpGroup);
  in_group(app.add_flag("--ignore-eos", flags.ignore_eos,
                        "ask the server to go on after the model's end token, so that answers have "
                        "the wanted length; always so over the socket"),
           kHttpGroup);
  add("--timeout", flags.timeout, "seconds for one request; default 600", "SECONDS")
      ->check(CLI::Range(0.001, 1e6));
  add("--tokens-per-word", flags.tokens_per_word,
      "how the server counts words; default: two requests find out", "X")
      ->check(CLI::Range(0.05, 100.0));
}

void add_load_flags_of_bench(CLI::App& app, BenchFlags& flags) {
  const auto add = [&](const std::string& name, auto& value, const std::string& help,
                       const std::string& type) {
    return in_group(app.add_option(name, value, help)->type_name(type), kServingGroup);
  };
  add("--concurrency", flags.concurrency,
      "requests at once; default 8; with --rate or --trace: at most, default no limit", "N")
      ->check(CLI::Range(1, 100'000));
  add("--requests", flags.requests,
      "how many; with a trace, its first ones; default 10 times the concurrency, or all of the "
      "trace",
      "M")
      ->check(CLI::Range(1, 100'000'000));
  auto* rate = add("--rate", flags.rate, "requests a second, with Poisson arrivals", "R")
                   ->check(CLI::Range(1e-6, 1e6));
  add("--duration", flags.duration, "start requests for this many seconds", "SECONDS")
      ->check(CLI::Range(0.001, 1e7));
  add("--trace", flags.trace,
      "recorded load: CSV with TIMESTAMP,ContextTokens,GeneratedTokens, or JSON lines with "
      "timestamp, input_length, output_length, hash_ids (shared prefixes)",
      "FILE")
      ->excludes(rate)
      ->excludes("--prompt-length")
      ->excludes("--decode-length");
  add("--trace-speed", flags.trace_speed, "replay this many times as fast; default 1", "X")
      ->check(CLI::Range(1e-6, 1e6))
      ->needs("--trace");
  add("--trace-scale", flags.trace_scale, "multiply the lengths of a trace; default 1", "X")
      ->check(CLI::Range(1e-6, 1e3))
      ->needs("--trace");
  add("--max-total-tokens", flags.max_total_tokens,
      "shorten requests of a trace to this many tokens, prompt and answer together; the report "
      "says how many were shortened",
      "N")
      ->check(CLI::Range(2, 1 << 24))
      ->needs("--trace");
  add("--shared-prefix", flags.shared_prefix,
      "this many first tokens of each prompt are the same, for prefix caches", "N")
      ->check(CLI::Range(0, 1 << 24));
  add("--goodput", flags.goodput,
      "count the requests that stay within these times in ms: ttft, itl, tpot, e2e",
      "ttft:500,...");
  add("--csv", flags.csv, "write one row per request", "FILE");
}

// Those that bench sets by itself, and those that make no sense in it.
constexpr std::array<std::string_view, 10> kNotInBench = {
    "max-new-tokens",  "seed",           "stop",       "exclude-stop-text",
    "best-of",         "truncate",       "ignore-eos", "return-full-text",
    "prompt-logprobs", "no-prefix-cache"};

void add_bench_sampling_flags(CLI::App& app, BenchFlags& flags) {
  add_sampling_flags(app, flags.sampling, false);
  for (const std::string_view name : kNotInBench) {
    CLI::Option* option = app.get_option_no_throw(fmt::format("--{}", name));
    if (option != nullptr) app.remove_option(option);
  }
}

// Flags that another mode would pass over are refused.
void refuse_group(const CLI::App& app, std::string_view group, const std::string& why) {
  for (const CLI::Option* option : app.get_options()) {
    // A key in the environment is no wish to use it.
    const bool is_given = option->count() > 0 && option->get_envname().empty();
    if (is_given && option->get_group() == group) {
      throw CLI::ValidationError(option->get_name(), why);
    }
  }
}

// Only --model, --limit and --json mean something without a measurement.
void check_history(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool is_ours = name == "--history" || name == "--model" || name == "--limit" ||
                         name == "--json" || option->get_group() == "Common options";
    if (!is_ours && option->count() > 0 && option->get_envname().empty()) {
      throw CLI::ValidationError(name, "makes no sense with --history");
    }
  }
}

void check_mode(const CLI::App& app, const BenchFlags& flags) {
  if (flags.history) return check_history(app);
  if (flags.url.empty()) refuse_group(app, kHttpGroup, "needs --url");
  if (flags.serving || !flags.url.empty()) {
    refuse_group(app, kEngineGroup,
                 "makes no sense with --url or --serving; use --concurrency and --requests");
  } else {
    refuse_group(app, kServingGroup, "needs --url or --serving");
    if (flags.decode_length < 2) {
      throw CLI::ValidationError("--decode-length", "needs 2 tokens or more to time decoding");
    }
  }
  if (flags.trace.empty() && flags.shared_prefix > flags.prompt_length) {
    throw CLI::ValidationError("--shared-prefix", "is longer than --prompt-length");
  }
}

}  // namespace

void add_bench_flags(CLI::App& app, BenchFlags& flags) {
  app.footer(std::string(kFooter));
  add_bench_sampling_flags(app, flags);  // first: --seed and --ignore-eos are ours
  add_shared_flags(app, flags);
  add_history_flags(app, flags);
  add_engine_flags(app, flags);
  add_server_flags(app, flags);
  add_load_flags_of_bench(app, flags);
  app.parse_complete_callback([&app, &flags] { check_mode(app, flags); });
}

int run_bench(const BenchFlags& flags, const CommonFlags& common) {
  Session session(common);
  if (flags.history) {
    const Store store = Store::open();
    session.out().write(flags.json ? bench::history_json(store, flags.model, flags.history_limit)
                                   : bench::history_table(store, flags.model, flags.history_limit));
    return 0;
  }
  const bool is_serving = flags.serving || !flags.url.empty();
  return is_serving ? bench::run_serving_bench(flags, session)
                    : bench::run_engine_bench(flags, session);
}

}  // namespace tgi
