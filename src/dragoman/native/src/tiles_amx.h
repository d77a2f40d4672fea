// Tiles by the processor's own instructions (tiles.h).
//
// In assembly, because the compilers' intrinsics leave out what they read and write: gcc's
// _tile_loadconfig says that it reads 8 of the 64 bytes, and a tile's load none at all, so stores to
// what they read may be dropped or moved behind them.
#pragma once

namespace {

// What ldtilecfg reads.
struct alignas(64) TileConfiguration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfiguration) == 64, "ldtilecfg reads 64 bytes");

class Tiles {
 public:
  ALWAYS_INLINE Tiles(int first, int second) { shape(first, second); }
  ALWAYS_INLINE ~Tiles() { __asm__ volatile("tilerelease" ::: "memory"); }
  Tiles(const Tiles &) = delete;
  Tiles &operator=(const Tiles &) = delete;

  ALWAYS_INLINE void shape(int first, int second) {
    const int rows[8] = {first, first, second, second, first, second, TILE_HEIGHT, TILE_HEIGHT};
    TileConfiguration wanted;
    for (int i = 0; i < 8; i++) {
      wanted.bytes[i] = TILE_BYTES;
      wanted.rows[i] = static_cast<uint8_t>(rows[i]);
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(wanted) : "memory");
  }
};

template <int T>
static ALWAYS_INLINE void tile_zero() {
  __asm__ volatile("tilezero %%tmm%c0" ::"i"(T));
}
template <int T>
static ALWAYS_INLINE void tile_load(const void *from, int64_t stride) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(T) : "memory");
}
template <int T>
static ALWAYS_INLINE void tile_store(void *to, int64_t stride) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(T) : "memory");
}
template <int C, int A, int B>
static ALWAYS_INLINE void tile_dot_bf16() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}
template <int C, int A, int B>
static ALWAYS_INLINE void tile_dot_u8s8() {
  __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}
template <int C, int A, int B>
static ALWAYS_INLINE void tile_dot_s8s8() {
  __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}

}  // namespace
