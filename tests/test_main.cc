// The main function of every test program: here with Catch2 2; with Catch2 3 a library has it.
#define CATCH_CONFIG_MAIN
#include "tests/catch.h"
