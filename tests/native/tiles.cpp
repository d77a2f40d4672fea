// What tiles compute, for a test (test_tiles.py): 2 x 2 tiles of sums over `steps` tiles of depth.
// A has `first` + `second` rows, B is packed: per 16 columns, 16 rows of 64 bytes for every step.
#include "tiles.h"

template <class Dot>
static void products(const uint8_t* a, int64_t a_row, const uint8_t* b, int64_t steps, uint8_t* c,
                     int64_t c_row, int64_t first, int64_t second, const Dot& dot) {
  Tiles tiles(static_cast<int>(first), static_cast<int>(second));
  tile_load<0>(c, c_row);
  tile_load<1>(c + TILE_BYTES, c_row);
  tile_zero<2>();
  tile_zero<3>();
  const int64_t panel = steps * TILE_HEIGHT * TILE_BYTES;
  for (int64_t s = 0; s < steps; s++, a += TILE_BYTES, b += TILE_HEIGHT * TILE_BYTES) {
    tile_load<4>(a, a_row);
    tile_load<5>(a + first * a_row, a_row);
    tile_load<6>(b, TILE_BYTES);
    tile_load<7>(b + panel, TILE_BYTES);
    dot();
  }
  tile_store<0>(c, c_row);
  tile_store<1>(c + TILE_BYTES, c_row);
  tile_store<2>(c + first * c_row, c_row);
  tile_store<3>(c + first * c_row + TILE_BYTES, c_row);
}

#define TILE_PRODUCT(name)                                                                      \
  KERNEL(void, name, const uint8_t* a, int64_t a_row, const uint8_t* b, int64_t steps, uint8_t* c, \
         int64_t c_row, int64_t first, int64_t second) {                                        \
    products(a, a_row, b, steps, c, c_row, first, second, [] {                                  \
      tile_dot_##name<0, 4, 6>();                                                               \
      tile_dot_##name<1, 4, 7>();                                                               \
      tile_dot_##name<2, 5, 6>();                                                               \
      tile_dot_##name<3, 5, 7>();                                                               \
    });                                                                                         \
  }

TILE_PRODUCT(bf16)
TILE_PRODUCT(u8s8)
TILE_PRODUCT(s8s8)
