// Which sanitizer this is compiled for, told alike by g++ and clang.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TGI_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define TGI_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TGI_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__)
#define TGI_THREAD_SANITIZER 1
#endif

#if defined(TGI_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(TGI_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif
