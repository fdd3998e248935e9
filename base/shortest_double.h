#pragma once

namespace tgi {

// The double with the float's shortest decimal form: fewer digits on the wire, none lost. REQUIRES:
// finite.
double shortest_double(float value);

}  // namespace tgi
