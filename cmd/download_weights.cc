#include "cmd/download_weights.h"

#include <functional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/standard_error.h"
#include "cmd/download/run_fetch.h"
#include "cmd/merge_lora.h"
#include "cmd/output.h"

namespace tgi {
namespace {

download::FetchRequest make_request(const DownloadWeightsFlags& flags) {
  download::FetchRequest request = download::request_for(flags.model);
  request.revision = flags.revision.value_or("");
  request.rules = {.include = flags.include, .exclude = flags.exclude};
  request.offline = flags.offline;
  if (flags.cache_dir) {
    request.cache_dir = download::expand_path(*flags.cache_dir, request.variables);
  }
  if (flags.token) {
    request.settings.token = download::clean_token(*flags.token, "--token");
    request.settings.token_from = "--token";
  }
  return request;
}

}  // namespace

void add_download_weights_flags(CLI::App& app, DownloadWeightsFlags& flags) {
  app.footer(
      "The last line on standard output is the folder of the model, or its GGUF file, and without "
      "--json it is the "
      "only one: `tgi serve $(tgi download-weights ORG/NAME)`. The other commands download by "
      "themselves what they need.\n\n"
      "Files go to the cache of huggingface_hub ($HF_HUB_CACHE, else $HF_HOME/hub, else "
      "~/.cache/huggingface/hub), which both share. A download that was stopped goes on where it "
      "was; "
      "every file is checked against its hash before it is used. Weights are safetensors where the "
      "model has them; a torch checkpoint is converted.\n\n"
      "Read too: HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE, HF_HUB_DOWNLOAD_TIMEOUT, https_proxy, and "
      "AWS_* for buckets; see docs/download.md.");
  app.add_option(
         "model", flags.model,
         "ORG/NAME or ORG/NAME@REVISION of the hub, ORG/NAME:QUANTISATION of a GGUF file there, "
         "s3://BUCKET/PREFIX, https://HOST/FOLDER, the address of a .gguf file, or "
         "a folder, where only a torch checkpoint is converted")
      ->type_name("MODEL")
      ->required();
  app.add_option("--revision", flags.revision, "a branch, a tag or a commit; default main")
      ->type_name("REV");
  app.add_option("--include", flags.include,
                 "only files that match, instead of the default choice; * matches / too; may be "
                 "repeated")
      ->type_name("GLOB")
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args(false);
  app.add_option("--exclude", flags.exclude, "no files that match; may be repeated")
      ->type_name("GLOB")
      ->expected(1, CLI::detail::expected_max_vector_size)
      ->allow_extra_args(false);
  app.add_option("--cache-dir", flags.cache_dir, "instead of the cache of huggingface_hub")
      ->type_name("DIR");
  app.add_option("--token", flags.token,
                 "of the hub; HF_TOKEN is better, as a flag can be read in the list of processes")
      ->type_name("TOKEN");
  app.add_flag("--offline", flags.offline,
               "use no network: only say where the model is, if it is here");
  app.add_flag(
      "--merge-lora", flags.merge_lora,
      "of a LoRA adapter, a folder or a GGUF file, bring the model that it was made for too, and "
      "write the two as one checkpoint, whose folder is the answer; the daemon does it");
  CLI::Option* quiet = app.add_flag("-q,--quiet", flags.quiet, "no progress on stderr");
  app.add_flag("--json", flags.json,
               "one JSON object a line on standard output: plan, progress, file, note, done")
      ->excludes(quiet);
}

int run_download_weights(const DownloadWeightsFlags& flags, const CommonFlags& common) {
  Session session(common);
  Output& out = session.out();
  const download::FetchRequest request = make_request(flags);
  const auto kind = flags.json    ? download::ProgressKind::kJson
                    : flags.quiet ? download::ProgressKind::kQuiet
                                  : download::kind_for_stderr();
  const auto write = flags.json ? std::function<void(const std::string&)>(
                                      [&](const std::string& text) { out.write(text); })
                                : write_stderr;
  const auto fetch = [&](const download::FetchRequest& wanted) {
    return download::run_fetch(wanted, kind, session.interrupt().fd(), write);
  };
  // An adapter's own file is here already, as is the built-in model.
  const bool is_file = flags.merge_lora && download::is_gguf_file(flags.model);
  const bool is_built_in = flags.model == "demo";
  download::FetchedModel model;
  if (is_built_in) {
    model.path = flags.model;
    model.name = flags.model;
    model.source = "built in";
  } else if (is_file) {
    model.path = flags.model;
    model.name = flags.model;
    model.source = "folder";
  } else {
    model = fetch(request);
  }
  if (flags.merge_lora) {
    if (const auto base = base_of_lora(session, model.path)) {
      download::FetchRequest wanted = request;
      wanted.model = base->model;
      wanted.revision = base->revision;
      wanted.rules = {};
      model.path = merge_lora(session, model.path, fetch(wanted).path);
    }
  }
  if (flags.json) {
    const Json done = {{"event", "done"},        {"path", model.path},     {"name", model.name},
                       {"source", model.source}, {"commit", model.commit}, {"bytes", model.bytes}};
    out.write(done.dump() + "\n");
  } else {
    out.write(model.path + "\n");
  }
  return 0;
}

}  // namespace tgi
