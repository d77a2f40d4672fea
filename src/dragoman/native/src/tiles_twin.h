// Tiles in plain C++ (tiles.h): what the instructions compute, as Intel's manual has it, step by step.
//
// It shows arithmetic and addresses, not speed. A product of tiles that were not configured, or after
// they were released, ends the process here as there.
#pragma once

#include <stdlib.h>
#include <string.h>

namespace {

struct Tile {
  int rows;  // 0: not configured
  alignas(64) uint8_t bytes[TILE_HEIGHT][TILE_BYTES];
};

static thread_local Tile the_tiles[8];

template <int T>
static ALWAYS_INLINE Tile &tile_at() {
  static_assert(T >= 0 && T < 8, "there are eight tiles");
  if (the_tiles[T].rows == 0) abort();
  return the_tiles[T];
}

class Tiles {
 public:
  Tiles(int first, int second) { shape(first, second); }
  ~Tiles() { memset(the_tiles, 0, sizeof(the_tiles)); }
  Tiles(const Tiles &) = delete;
  Tiles &operator=(const Tiles &) = delete;

  void shape(int first, int second) {
    const int rows[8] = {first, first, second, second, first, second, TILE_HEIGHT, TILE_HEIGHT};
    memset(the_tiles, 0, sizeof(the_tiles));
    for (int i = 0; i < 8; i++) {
      if (rows[i] < 1 || rows[i] > TILE_HEIGHT) abort();
      the_tiles[i].rows = rows[i];
    }
  }
};

template <int T>
static void tile_zero() {
  Tile &tile = tile_at<T>();
  memset(tile.bytes, 0, sizeof(tile.bytes));
}

// Rows beyond those of the tile become zero.
template <int T>
static void tile_load(const void *from, int64_t stride) {
  Tile &tile = tile_at<T>();
  tile_zero<T>();
  for (int r = 0; r < tile.rows; r++) {
    memcpy(tile.bytes[r], static_cast<const uint8_t *>(from) + r * stride, TILE_BYTES);
  }
}

template <int T>
static void tile_store(void *to, int64_t stride) {
  const Tile &tile = tile_at<T>();
  for (int r = 0; r < tile.rows; r++) {
    memcpy(static_cast<uint8_t *>(to) + r * stride, tile.bytes[r], TILE_BYTES);
  }
}

// Numbers too small for fp32's full precision count as zero, before and after.
static ALWAYS_INLINE float flushed(float x) {
  return __builtin_fabsf(x) < 1.17549435e-38f ? __builtin_copysignf(0.0f, x) : x;
}

static ALWAYS_INLINE float tile_float(uint32_t bits) {
  float out;
  memcpy(&out, &bits, 4);
  return flushed(out);
}

// Numbers of even and of odd place are summed apart, step after step, then added to each other and to
// what was there.
template <int C, int A, int B>
static void tile_dot_bf16() {
  Tile &c = tile_at<C>();
  const Tile &a = tile_at<A>(), &b = tile_at<B>();
  if (a.rows != c.rows || b.rows != TILE_HEIGHT) abort();
  for (int m = 0; m < c.rows; m++) {
    float even[16] = {}, odd[16] = {}, sums[16];
    for (int k = 0; k < TILE_HEIGHT; k++) {
      uint32_t left, right[16];
      memcpy(&left, a.bytes[m] + 4 * k, 4);
      memcpy(right, b.bytes[k], TILE_BYTES);
      const float first = tile_float(left << 16), second = tile_float(left & 0xffff0000u);
      for (int n = 0; n < 16; n++) {
        even[n] = flushed(__builtin_fmaf(first, tile_float(right[n] << 16), even[n]));
        odd[n] = flushed(__builtin_fmaf(second, tile_float(right[n] & 0xffff0000u), odd[n]));
      }
    }
    memcpy(sums, c.bytes[m], TILE_BYTES);
    for (int n = 0; n < 16; n++) sums[n] = flushed(flushed(sums[n]) + flushed(even[n] + odd[n]));
    memcpy(c.bytes[m], sums, TILE_BYTES);
  }
}

template <int C, int A, int B, class Left>
static void tile_dot_bytes() {
  Tile &c = tile_at<C>();
  const Tile &a = tile_at<A>(), &b = tile_at<B>();
  if (a.rows != c.rows || b.rows != TILE_HEIGHT) abort();
  for (int m = 0; m < c.rows; m++) {
    uint32_t sums[16];  // wraps around, as there
    memcpy(sums, c.bytes[m], TILE_BYTES);
    for (int k = 0; k < TILE_BYTES; k++) {
      const int left = static_cast<Left>(a.bytes[m][k]);
      for (int n = 0; n < 16; n++) {
        const int right = static_cast<int8_t>(b.bytes[k / 4][4 * n + k % 4]);
        sums[n] += static_cast<uint32_t>(left * right);
      }
    }
    memcpy(c.bytes[m], sums, TILE_BYTES);
  }
}

template <int C, int A, int B>
static void tile_dot_u8s8() {
  tile_dot_bytes<C, A, B, uint8_t>();
}
template <int C, int A, int B>
static void tile_dot_s8s8() {
  tile_dot_bytes<C, A, B, int8_t>();
}

}  // namespace
