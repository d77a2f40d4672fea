// Calls the int8 decoder of another instruction set for a test (test_emulated.py): reads what to do
// from one file and writes what came of it to another. Linked statically, it runs in an emulator.
//
//   emulated WHAT FOUND    both files: numbers of this machine, one after the other
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"

extern "C" {
const char* dragoman_levels();
void* dragoman_neon_decode_model_new(const Shape*, const Factors*);
void dragoman_neon_decode_model_pack(void*, const float* const*);
int dragoman_neon_decode_model_parts(void*, void**, int64_t*);
void dragoman_neon_decode_model_free(void*);
void dragoman_neon_decode_model_shortlist(void*, const int32_t*, int, const int32_t*,
                                          const int32_t*);
int dragoman_neon_decode_encode(const void*, const int64_t*, const int32_t*, int, const uint8_t*,
                                const float*, float*);
void* dragoman_neon_decode_state_new(const void*);
void dragoman_neon_decode_state_free(void*);
void dragoman_neon_decode_state_admit(void*, const float*, const int32_t*, int, const uint8_t*,
                                      const int64_t*);
int dragoman_neon_decode_state_select(void*, const int64_t*, int);
int dragoman_neon_decode_step(void*, const int64_t*, int, int, const float*, int, float*);
int dragoman_neon_decode_best(void*, const int64_t*, int, int, const float*, int, int, float*,
                              int64_t*);
}

namespace {

FILE *what, *found;

void check(bool right, const char* where) {
  if (right) return;
  fprintf(stderr, "emulated: %s\n", where);
  exit(1);
}

template <class T>
T* read(size_t count) {
  T* values = static_cast<T*>(malloc(count * sizeof(T) + 1));
  check(fread(values, sizeof(T), count, what) == count, "the file ends too soon");
  return values;
}

int64_t number() {
  int64_t* one = read<int64_t>(1);
  const int64_t value = *one;
  free(one);
  return value;
}

template <class T>
void write(const T* values, size_t count) {
  check(fwrite(values, sizeof(T), count, found) == count, "cannot write");
}

void* new_model(Shape& shape) {
  shape = *read<Shape>(1);
  const Factors* factors = read<Factors>(1);
  const int64_t count = number();
  const float** weights = static_cast<const float**>(calloc(count, sizeof(float*)));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t size = number();
    if (size >= 0) weights[i] = read<float>(size);
  }
  void* model = dragoman_neon_decode_model_new(&shape, factors);
  dragoman_neon_decode_model_pack(model, weights);
  return model;
}

void write_parts(void* model) {
  const int count = dragoman_neon_decode_model_parts(model, nullptr, nullptr);
  void** places = static_cast<void**>(calloc(count, sizeof(void*)));
  int64_t* sizes = static_cast<int64_t*>(calloc(count, sizeof(int64_t)));
  dragoman_neon_decode_model_parts(model, places, sizes);
  for (int i = 0; i < count; ++i) write(static_cast<uint8_t*>(places[i]), sizes[i]);
}

}  // namespace

int main(int given, char** names) {
  if (given == 1) {
    puts(dragoman_levels());
    return 0;
  }
  check(given == 3, "two files are needed");
  what = fopen(names[1], "rb");
  found = fopen(names[2], "wb");
  check(what != nullptr && found != nullptr, "cannot open the files");
  Shape shape;
  void *model = nullptr, *state = nullptr;
  for (;;) {
    int64_t asked;
    if (fread(&asked, sizeof asked, 1, what) != 1) break;
    switch (asked) {
      case 1:
        model = new_model(shape);
        state = dragoman_neon_decode_state_new(model);
        break;
      case 2:
        write_parts(model);
        break;
      case 3: {  // shortlist: always, offsets, candidates
        const int64_t count = number(), all = number();
        const int32_t* always = read<int32_t>(count);
        const int32_t* offsets = read<int32_t>(shape.source_vocabulary + 1);
        dragoman_neon_decode_model_shortlist(model, always, static_cast<int>(count), offsets,
                                             read<int32_t>(all));
        break;
      }
      case 4: {  // sources: encoded, and admitted to the search
        const int64_t batch = number(), total = number(), masked = number(), table = number();
        const int32_t* lengths = read<int32_t>(batch);
        const int64_t* tokens = read<int64_t>(total);
        const uint8_t* visible = masked ? read<uint8_t>(total) : nullptr;
        const float* positions = read<float>(table);
        float* rows = static_cast<float*>(malloc(total * shape.model_dim * sizeof(float)));
        check(dragoman_neon_decode_encode(model, tokens, lengths, static_cast<int>(batch), visible,
                                          positions, rows) == 0, "a token is none");
        write(rows, total * shape.model_dim);
        dragoman_neon_decode_state_admit(state, rows, lengths, static_cast<int>(batch), visible,
                                         tokens);
        break;
      }
      case 5: {  // a step: all logits, where k is 0, or the k best
        const int64_t count = number(), each = number(), known = number(), table = number();
        const int64_t k = number();
        const int rows = static_cast<int>(count), new_ones = static_cast<int>(each);
        const int64_t* tokens = read<int64_t>(count * each);
        const float* positions = read<float>(table);
        const size_t out = count * (k > 0 ? k : shape.target_vocabulary);
        float* values = static_cast<float*>(malloc(out * sizeof(float)));
        int64_t* ids = static_cast<int64_t*>(malloc(out * sizeof(int64_t)));
        const int wrong =
            k > 0 ? dragoman_neon_decode_best(state, tokens, rows, new_ones, positions,
                                              static_cast<int>(known), static_cast<int>(k), values,
                                              ids)
                  : dragoman_neon_decode_step(state, tokens, rows, new_ones, positions,
                                              static_cast<int>(known), values);
        check(wrong == 0, "a step was refused");
        write(values, out);
        if (k > 0) write(ids, out);
        break;
      }
      case 6: {
        const int64_t count = number();
        check(dragoman_neon_decode_state_select(state, read<int64_t>(count),
                                                static_cast<int>(count)) == 1, "no such row");
        break;
      }
      default:
        check(false, "asked for what it does not know");
    }
  }
  if (state != nullptr) dragoman_neon_decode_state_free(state);
  if (model != nullptr) dragoman_neon_decode_model_free(model);
  check(fclose(found) == 0, "cannot write");
  return 0;
}
