// How one source file serves several instruction sets.
//
// A kernel file names in its first lines the levels it is compiled for, for example
//     // levels: avx512 avx2
// and is compiled once for each, with that level's compiler flags and DRAGOMAN_LEVEL set to its
// name. A file without that line is compiled once, for any processor ("base").
//
// An entry point written as
//     KERNEL(void, softmax_rows, const float *in, float *out, int64_t rows) { ... }
// becomes the C function dragoman_<level>_softmax_rows. Python asks dragoman_levels() what the
// processor can run and binds the names of the best level (native/library.py).
//
// Everything else in a kernel file and in the headers that it includes must be `static` or in an
// anonymous namespace, and must not instantiate out-of-line templates of the standard library:
// otherwise the linker would keep one copy of the same name out of two levels, perhaps the one
// that this processor cannot run.
#pragma once

#include <cstddef>
#include <cstdint>

#define DRAGOMAN_EXPORT extern "C" __attribute__((visibility("default")))

#ifdef DRAGOMAN_LEVEL
#define DRAGOMAN_JOIN_(level, name) dragoman_##level##_##name
#define DRAGOMAN_JOIN(level, name) DRAGOMAN_JOIN_(level, name)
#define KERNEL(result, name, ...) \
  DRAGOMAN_EXPORT result DRAGOMAN_JOIN(DRAGOMAN_LEVEL, name)(__VA_ARGS__)
#endif

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define RESTRICT __restrict__
