// What this processor can run, and which build of the library this is.
#include "dispatch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#ifndef DRAGOMAN_FINGERPRINT
#define DRAGOMAN_FINGERPRINT "unknown"
#endif

namespace {

#if defined(__x86_64__)

struct Registers {
  unsigned a, b, c, d;
};

// All zero where the processor does not know the leaf.
Registers cpuid(unsigned leaf, unsigned part) {
  Registers r{};
  __asm__ volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d) : "a"(0), "c"(0));
  if (r.a < leaf) return {};
  __asm__ volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d) : "a"(leaf), "c"(part));
  return r;
}

// AMX-TILE, AMX-INT8 and AMX-BF16, with the eight tiles of 16 x 64 bytes that tiles.h expects.
bool has_tiles() {
  const unsigned wanted = 1u << 24 | 1u << 25 | 1u << 22;
  if ((cpuid(7, 0).d & wanted) != wanted) return false;
  const Registers palette = cpuid(0x1d, 1);
  return palette.b >> 16 >= 8 && (palette.b & 0xffff) >= 64 && (palette.c & 0xffff) >= 16;
}

// Why the operating system does not let this process use tiles; null if it does. A process asks once,
// before its first tile, and is ended at that one if it may not.
const char *asked = nullptr;
char refusal[128];

const char *why_no_tiles() {
  if (asked != nullptr) return asked[0] == '\0' ? nullptr : asked;
  unsigned kept = 0;  // XCR0: the state that the system keeps when it switches threads
  if (cpuid(1, 0).c >> 27 & 1) __asm__ volatile("xgetbv" : "=a"(kept) : "c"(0) : "edx");
  constexpr int ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18;
  if ((kept >> 17 & 3) != 3) {
    asked = "amx: this system does not keep tiles (Linux does from 5.16 on)";
  } else if (syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) != 0) {
    snprintf(refusal, sizeof(refusal), "amx: the system refuses its tiles (%s)", strerror(errno));
    asked = refusal;
  } else {
    asked = "";
  }
  return why_no_tiles();
}

#endif

}  // namespace

// Names of the levels that the processor and the operating system support, best first.
DRAGOMAN_EXPORT const char *dragoman_levels() {
  static thread_local char names[64];
  names[0] = '\0';
  const auto add = [](bool there, const char *name) {
    if (there) strcat(strcat(names, names[0] == '\0' ? "" : " "), name);
  };
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512vnni =
      avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni");
  const bool avx512 = avx512vnni && __builtin_cpu_supports("avx512bf16");
  add(avx512 && has_tiles() && why_no_tiles() == nullptr, "amx");
  add(avx512, "avx512");
  add(avx512vnni, "avx512vnni");
  // AVX-VNNI: older compilers cannot be asked by name.
  add(avx2 && (cpuid(7, 1).a >> 4 & 1), "avxvnni");
  add(avx2, "amxtwin");
  add(avx2, "avx2");
#elif defined(__aarch64__) && defined(__linux__)
  add(getauxval(AT_HWCAP) & HWCAP_ASIMDDP, "neon");
#endif
  return names;
}

// A level that the processor has and the operating system refuses, and why; empty if there is none.
DRAGOMAN_EXPORT const char *dragoman_refused() {
#if defined(__x86_64__)
  if (has_tiles() && why_no_tiles() != nullptr) return why_no_tiles();
#endif
  return "";
}

// A hash of all sources and of the compiler's flags: the library fits this package or it does not.
DRAGOMAN_EXPORT const char *dragoman_fingerprint() { return DRAGOMAN_FINGERPRINT; }
