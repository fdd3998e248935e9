// Owns the headers that are read once for all tests (tests/CMakeLists.txt).
#define CATCH_CONFIG_RUNNER
int main() {
  return 0;
}
