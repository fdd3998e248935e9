// The tables of the store and how older ones are brought up: one step for each version, never
// changed once released. PRAGMA user_version counts the steps that a file has had.
#pragma once

#include "base/store/database.h"

namespace tgi {

int64_t newest_schema();

// What has been done to the file so far. Throws kInvalidArgument when it is damaged, no database or
// another program's, and kUnsupported when a newer tgi wrote it; nothing is changed.
int64_t check_schema(const Database& database);

// Does the steps that are missing, all or none. Safe while other processes do the same.
void bring_up_schema(const Database& database);

}  // namespace tgi
