#include "cmd/unload.h"

namespace tgi {

void add_unload_flags(CLI::App& app, UnloadFlags& /*flags*/) {
  app.footer("Never starts a daemon.");
}

int run_unload(const UnloadFlags& /*flags*/, const CommonFlags& common) {
  Session session(common);
  session.client().call(ipc::kUnload);
  session.out().write("unloaded\n");
  return 0;
}

}  // namespace tgi
