// What this processor can run, and which build of the library this is.
#include "dispatch.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#ifndef DRAGOMAN_FINGERPRINT
#define DRAGOMAN_FINGERPRINT "unknown"
#endif

// Names of the levels that the processor and the operating system support, best first.
DRAGOMAN_EXPORT const char *dragoman_levels() {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512vnni =
      avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni");
  const bool avx512 = avx512vnni && __builtin_cpu_supports("avx512bf16");
  // CPUID leaf 7, sub-leaf 1, EAX bit 4: AVX-VNNI (older compilers cannot be asked by name).
  unsigned a = 7, b = 0, c = 1, d = 0, highest = 0;
  __asm__ volatile("cpuid" : "=a"(highest), "=b"(b), "=c"(c), "=d"(d) : "a"(0), "c"(0));
  bool avxvnni = false;
  if (highest >= 7) {
    __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(1));
    avxvnni = avx2 && ((a >> 4) & 1);
  }
  if (avx512) return avxvnni ? "avx512 avx512vnni avxvnni avx2" : "avx512 avx512vnni avx2";
  if (avx512vnni) return avxvnni ? "avx512vnni avxvnni avx2" : "avx512vnni avx2";
  if (avxvnni) return "avxvnni avx2";
  if (avx2) return "avx2";
#elif defined(__aarch64__) && defined(__linux__)
  if (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) return "neon";
#endif
  return "";
}

// A hash of all sources and of the compiler's flags: the library fits this package or it does not.
DRAGOMAN_EXPORT const char *dragoman_fingerprint() { return DRAGOMAN_FINGERPRINT; }
