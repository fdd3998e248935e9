// Whether this process may use the matrix unit (AMX).
#pragma once

namespace tgi {

// Asks the kernel for the permission too, which then holds for all threads. False where processor
// or kernel have no AMX with bf16 and int8.
bool amx_available();

}  // namespace tgi
