// Intel's tiles (AMX): eight registers of at most 16 rows of 64 bytes, and products of whole tiles.
//
// Two headers have the same names. tiles_amx.h is the processor's instructions; tiles_twin.h computes
// the same in plain C++, so that a kernel on tiles can be tested and sanitised on any processor. A
// source is compiled for both by the levels `amx` and `amxtwin`; DRAGOMAN_TILES is defined in both.
//
//   Tiles tiles(first, second);   configures the calling thread's tiles, and releases them at the end
//                                 of the scope, so that an idle thread carries no state of tiles.
//                                 The same shapes for all products below (rows of 64 bytes):
//        0, 1   sums, `first` rows (1 ... 16)      2, 3   sums, `second` rows
//        4      the left operand, `first` rows     5      the left operand, `second` rows
//        6, 7   the right operand, 16 rows
//   tiles.shape(first, second)    other numbers of rows from here on. All tiles become zero.
//
//   tile_zero<T>()
//   tile_load<T>(from, stride)    a row every `stride` bytes. Rows that the tile has not are not read
//   tile_store<T>(to, stride)
//
//   tile_dot_bf16<C, A, B>()      C += A B: A holds bf16, B pairs of bf16, C floats
//   tile_dot_u8s8<C, A, B>()      C += A B: A holds unsigned bytes, B fours of signed ones, C int32
//   tile_dot_s8s8<C, A, B>()      the same with signed bytes in A
//
// The right operand is packed: for products of bf16, word n of its row k holds the numbers (2k, n) and
// (2k + 1, n) of B; for those of bytes, the four from (4k, n) on. A tile is 32 steps of bf16 or 64 of
// bytes deep; shorter sums are padded with zeros in both operands.
#pragma once

#include "dispatch.h"

namespace {

constexpr int TILE_HEIGHT = 16;  // rows
constexpr int TILE_BYTES = 64;   // of a row

}  // namespace

#if defined(__AMX_TILE__)
#define DRAGOMAN_TILES
#include "tiles_amx.h"
#elif defined(DRAGOMAN_TILE_TWIN)
#define DRAGOMAN_TILES
#include "tiles_twin.h"
#endif
