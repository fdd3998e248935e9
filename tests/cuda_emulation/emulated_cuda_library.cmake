# Emulated kernels are slow enough without a debug build.
function(tgi_emulated_speed target)
  if(TGI_SANITIZE)
    target_compile_options(${target} PRIVATE -O1)
  else()
    target_compile_options(${target} PRIVATE -O2)
  endif()
endfunction()

# tgi_emulated_cuda_library(NAME SOURCES a.cu b.cc... LIBS...): a static library of CUDA sources for
# the emulation. May be called in any folder; sources are relative to it or absolute.
function(tgi_emulated_cuda_library name)
  cmake_parse_arguments(CUDA "" "" "SOURCES;LIBS" ${ARGN})
  set(kernels ${CUDA_SOURCES})
  list(FILTER kernels INCLUDE REGEX "\\.cu$")
  if(kernels)
    # nvcc does not ask for explicit conversions, knows #pragma unroll, and reads memory through
    # types that it was not written with. Kernels and helpers of one name are in many of these files.
    set_source_files_properties(${kernels} PROPERTIES LANGUAGE CXX SKIP_UNITY_BUILD_INCLUSION ON
      COMPILE_OPTIONS "-xc++;-Wno-conversion;-Wno-sign-conversion;-Wno-unknown-pragmas;-Wno-pedantic")
  endif()
  add_library(${name} STATIC ${CUDA_SOURCES})
  target_compile_options(${name} PUBLIC -fno-strict-aliasing)
  target_link_libraries(${name} PUBLIC tgi_cuda_emulation ${CUDA_LIBS})
  tgi_emulated_speed(${name})
endfunction()
