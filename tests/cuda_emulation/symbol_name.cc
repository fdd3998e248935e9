#include "tests/cuda_emulation/symbol_name.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <vector>

namespace tgi::cuda_emulation {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  char* out = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string text = status == 0 ? out : name;
  std::free(out);
  return text;
}

// Kernels are in anonymous namespaces: only the symbol table of the file has their names. It is
// read once, when the process is about to end, from a file that the linker made: no checks.
std::string name_in_file(const char* path, uintptr_t address, uintptr_t offset) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  Elf64_Ehdr header;
  if (bytes.size() < sizeof(header)) return {};
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return {};
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), bytes.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    const char* names = bytes.data() + sections[section.sh_link].sh_offset;
    for (size_t i = 0; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, bytes.data() + section.sh_offset + i * sizeof(symbol), sizeof(symbol));
      if ((symbol.st_info & 15) != STT_FUNC) continue;
      if (symbol.st_value == offset || symbol.st_value == address) {
        return demangled(names + symbol.st_name);
      }
    }
  }
  return {};
}

}  // namespace

std::string symbol_name(const void* function) {
  Dl_info info{};
  if (dladdr(function, &info) == 0) return "?";
  const auto address = reinterpret_cast<uintptr_t>(function);
  const uintptr_t offset = address - reinterpret_cast<uintptr_t>(info.dli_fbase);
  if (info.dli_sname != nullptr && info.dli_saddr == function) return demangled(info.dli_sname);
  std::string name = name_in_file(info.dli_fname, address, offset);
  if (!name.empty()) return name;
  char out[512];
  std::snprintf(out, sizeof(out), "%s+0x%zx", info.dli_fname, static_cast<size_t>(offset));
  return out;
}

}  // namespace tgi::cuda_emulation
