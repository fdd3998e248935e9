// What was caught, as an Error in the user's terms.
#pragma once

#include "base/error.h"

namespace tgi {

// For the exception that is handled now, of whatever type: memory and threads that the system does
// not give are kOutOfMemory and say which limit to raise, what has no name is kInternal. Call it in
// a catch block alone.
Error current_error();

}  // namespace tgi
