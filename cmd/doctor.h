// tgi doctor: one screen about this machine, its daemon and its model: what is as it should be,
// what is not, and what to do about it. Never starts a daemon.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cmd/session.h"

namespace tgi {

struct DoctorFlags {
  bool json = false;
  bool quick = false;
  std::string version;  // the line of --version; filled in by main
};

void add_doctor_flags(CLI::App& app, DoctorFlags& flags);
int run_doctor(const DoctorFlags& flags, const CommonFlags& common);

}  // namespace tgi
