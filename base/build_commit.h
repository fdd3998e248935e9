// The commit of the sources, "abc1234", with "+" behind it when files were changed since; empty
// where git did not tell. Written when it is built (scripts/write_build_commit.cmake) and linked
// into the two programs alone.
#pragma once

namespace tgi {

extern const char* const kBuildCommit;

}  // namespace tgi
