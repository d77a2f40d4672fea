// Calls training kernels of another instruction set for a test (test_emulated_training.py): reads
// calls from one file and writes what they left in memory to another. Linked statically, it runs in
// an emulator.
//
//   emulated_calls WHAT FOUND    both files: numbers of this machine, one after the other
//
// A call: the kernel's name; the blocks of memory that it sees; places in them that hold addresses of
// places in others; its arguments. What comes of it: its result, and all of its blocks.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOR_ALL(DO)                                                                            \
  DO(packed_words_fp32) DO(pack_weights_fp32) DO(linear_forward_fp32) DO(linear_relu_fp32)          \
  DO(linear_backward_input_fp32) DO(linear_backward_weight_fp32) DO(cross_entropy_slopes_fp32) \
  DO(cross_entropy_fp32) DO(norm_sums) DO(norm_forward_fp32) DO(norm_forward_bf16)             \
  DO(norm_backward_fp32) DO(norm_backward_bf16) DO(dropout_fp32) DO(dropout_bf16)              \
  DO(embedding_forward_fp32)                                                                   \
  DO(embedding_forward_bf16) DO(embedding_backward_fp32) DO(embedding_backward_bf16)           \
  DO(attention_forward_fp32) DO(attention_forward_bf16) DO(attention_backward_fp32)            \
  DO(attention_backward_bf16) DO(lstm_forward_fp32) DO(lstm_forward_bf16)                      \
  DO(lstm_backward_fp32) DO(lstm_backward_bf16) DO(additive_forward_fp32)                      \
  DO(additive_forward_bf16) DO(additive_backward_fp32) DO(additive_backward_bf16)

extern "C" {
#define DECLARE(name) void dragoman_neon_##name();
FOR_ALL(DECLARE)
}

namespace {

// Whole numbers and addresses are counted apart from floats, and what a kernel does not ask for it
// does not see (AAPCS64, 6.8.2), so that one type serves all of them.
constexpr int WHOLE = 24, REAL = 8;
using Any = int64_t (*)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                        int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                        int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                        float, float, float, float, float, float, float, float);

FILE *what, *found;

void check(bool right, const char *where) {
  if (right) return;
  fprintf(stderr, "emulated_calls: %s\n", where);
  exit(1);
}

int64_t number() {
  int64_t value;
  check(fread(&value, sizeof value, 1, what) == 1, "the file ends too soon");
  return value;
}

Any kernel(const char *name) {
#define FIND(known) \
  if (strcmp(name, #known) == 0) return reinterpret_cast<Any>(dragoman_neon_##known);
  FOR_ALL(FIND)
  check(false, name);
  return nullptr;
}

struct Block {
  int64_t size;
  char *bytes;
};

void call(int64_t length) {
  char name[100] = {};
  check(length < 100 && fread(name, 1, length, what) == static_cast<size_t>(length), "a name");
  const int64_t count = number();
  Block *blocks = static_cast<Block *>(calloc(count + 1, sizeof(Block)));
  for (int64_t i = 0; i < count; i++) {
    Block &block = blocks[i];
    block.size = number();
    void *memory = nullptr;
    check(posix_memalign(&memory, 64, block.size + 1) == 0, "no memory");
    block.bytes = static_cast<char *>(memory);
    check(fread(block.bytes, 1, block.size, what) == static_cast<size_t>(block.size), "a block");
  }
  for (int64_t left = number(); left > 0; left--) {
    const int64_t in = number(), at = number(), of = number(), place = number();
    char *address = blocks[of].bytes + place;
    memcpy(blocks[in].bytes + at, &address, sizeof address);
  }
  int64_t w[WHOLE] = {};
  float r[REAL] = {};
  int wholes = 0, reals = 0;
  for (int64_t left = number(); left > 0; left--) {
    const int64_t kind = number(), value = number(), place = number();
    check(wholes < WHOLE && reals < REAL, "too many arguments");
    if (kind == 0) {
      w[wholes++] = value;
    } else if (kind == 1) {
      memcpy(&r[reals++], &value, sizeof(float));
    } else {
      w[wholes++] = reinterpret_cast<int64_t>(blocks[value].bytes + place);
    }
  }
  const int64_t result = kernel(name)(
      w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13],
      w[14], w[15], w[16], w[17], w[18], w[19], w[20], w[21], w[22], w[23], r[0], r[1], r[2], r[3],
      r[4], r[5], r[6], r[7]);
  check(fwrite(&result, sizeof result, 1, found) == 1, "cannot write");
  for (int64_t i = 0; i < count; i++) {
    check(fwrite(blocks[i].bytes, 1, blocks[i].size, found) == static_cast<size_t>(blocks[i].size),
          "cannot write");
    free(blocks[i].bytes);
  }
  free(blocks);
}

}  // namespace

int main(int given, char **names) {
  check(given == 3, "two files are needed");
  what = fopen(names[1], "rb");
  found = fopen(names[2], "wb");
  check(what != nullptr && found != nullptr, "cannot open the files");
  int64_t length;
  while (fread(&length, sizeof length, 1, what) == 1) call(length);
  check(fclose(found) == 0, "cannot write");
  return 0;
}
