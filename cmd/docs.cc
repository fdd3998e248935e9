#include "cmd/docs.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/manual/completions.h"
#include "base/manual/man_page.h"
#include "cmd/launcher_flags.h"
#include "cmd/manual.h"
#include "cmd/output.h"
#include "cmd/settings_page.h"

namespace tgi {
namespace {

void write_into(const std::string& folder, const std::string& name, const std::string& text) {
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/" + name;
  write_file(path, text);
  std::filesystem::permissions(path, std::filesystem::perms(0644));
}

void write_man_pages(const ProgramDoc& doc, const DocsFlags& flags) {
  const std::string& folder = *flags.man_dir;
  write_into(folder, "tgi.1", program_man_page(doc));
  for (const CommandDoc& command : doc.commands) {
    write_into(folder, fmt::format("tgi-{}.1", command.name), command_man_page(doc, command));
  }
  if (!flags.protocol) return;
  write_into(folder, "tgi-ipc.5",
             markdown_man_page("tgi-ipc", 5, "File Formats", "the protocol between tgi and tgid",
                               read_input(*flags.protocol), {"tgi(1)", "tgid(8)"}));
}

}  // namespace

void add_docs_flags(CLI::App& app, DocsFlags& flags) {
  flags.app = app.get_parent();
  app.add_option("--man", flags.man_dir, "write the man pages into this folder")->type_name("DIR");
  app.add_option("--protocol", flags.protocol,
                 "with --man: docs/protocol.md, to write tgi-ipc.5 from")
      ->type_name("FILE");
  app.add_option("--completions", flags.completions_dir, "write the completions into this folder")
      ->type_name("DIR");
  app.add_option("--pages", flags.pages_dir, "write the generated pages of docs/ into this folder")
      ->type_name("DIR");
}

int run_docs(const DocsFlags& flags, const CommonFlags& /*common*/) {
  TGI_CHECK(flags.app != nullptr);
  if (!flags.man_dir && !flags.completions_dir && !flags.pages_dir) {
    throw UsageError("nothing to write; give --man DIR, --completions DIR or --pages DIR");
  }
  const ProgramDoc doc = describe_tgi(*flags.app);
  if (flags.man_dir) write_man_pages(doc, flags);
  if (flags.pages_dir) {
    write_into(*flags.pages_dir, "flags_from_tgi.md", launcher_flags_page());
    write_into(*flags.pages_dir, "settings.md", settings_page());
  }
  if (flags.completions_dir) {
    write_into(*flags.completions_dir, "tgi.bash", bash_completion(doc));
    write_into(*flags.completions_dir, "tgi.zsh", zsh_completion(doc));
    write_into(*flags.completions_dir, "tgi.fish", fish_completion(doc));
  }
  return 0;
}

}  // namespace tgi
