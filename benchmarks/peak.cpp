// Products whose operands stay in registers: what nothing on this instruction set can be faster than
// (peak.py).
#ifdef __AMX_TILE__
#include "tiles.h"

KERNEL(void, peak, int64_t times) {
  Tiles tiles(TILE_HEIGHT, TILE_HEIGHT);
  tile_zero<4>(), tile_zero<5>(), tile_zero<6>(), tile_zero<7>();
  tile_zero<0>(), tile_zero<1>(), tile_zero<2>(), tile_zero<3>();
  for (int64_t i = 0; i < times; i++) {
    tile_dot_bf16<0, 4, 6>();
    tile_dot_bf16<1, 4, 7>();
    tile_dot_bf16<2, 5, 6>();
    tile_dot_bf16<3, 5, 7>();
  }
}
#elif defined(__AVX512F__)
#include <immintrin.h>

#include "dispatch.h"

#define PEAK(name, instruction)                                                        \
  KERNEL(void, name, int64_t times) {                                                  \
    __m512 sums[16] = {}, left = _mm512_setzero_ps(), right = _mm512_setzero_ps();     \
    for (int64_t i = 0; i < times; i++)                                                \
      _Pragma("GCC unroll 16") for (auto &sum : sums)                                  \
          __asm__ volatile(instruction " %2, %1, %0" : "+v"(sum) : "v"(left), "v"(right)); \
  }

PEAK(peak_fp32, "vfmadd231ps")
#ifdef __AVX512BF16__
PEAK(peak_bf16, "vdpbf16ps")
#endif
#ifdef __AVX512VNNI__
PEAK(peak_int8, "vpdpbusd")
#endif
#endif
