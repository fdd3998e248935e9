// Keys that libedit does not know by itself.
#pragma once

#include <histedit.h>

namespace tgi {

// Binds what xterm and its like send for the arrows with Ctrl, Alt or Shift, for Home, End, Delete
// and the function keys: words are gone over and deleted as shells do. Those that mean nothing here
// do nothing; unbound, the end of their sequence would be written into the line.
void bind_keys(EditLine* editor);

}  // namespace tgi
