#include "cmd/unload.h"

#include <fmt/format.h>

namespace tgi {

void add_unload_flags(CLI::App& app, UnloadFlags& flags) {
  app.footer("Never starts a daemon.");
  app.add_option("name", flags.name,
                 "of a model that was loaded with one; default: the default one")
      ->type_name("NAME");
  app.add_flag("--keep-name", flags.keep_name,
               "give its memory back only: it is loaded again when a request asks for it");
}

int run_unload(const UnloadFlags& flags, const CommonFlags& common) {
  Session session(common);
  ipc::UnloadParams params{.keep_name = flags.keep_name};
  if (!flags.name.empty()) params.model = flags.name;
  session.client().call(ipc::kUnload, ipc::to_json(params));
  session.out().write(params.model ? fmt::format("unloaded {}\n", *params.model) : "unloaded\n");
  return 0;
}

}  // namespace tgi
