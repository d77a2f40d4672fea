// Sharing work between the processor's cores.
//
// The threads are those of the OpenMP runtime that torch has loaded, when there is one: a second
// team would fight with torch's spinning threads for the same cores. Where nearly all the work is
// the kernels' (training by them), torch keeps to one thread and a pool of our own does better.
// Neither OpenMP's headers nor its compiler flag are needed.
#pragma once

#include "dispatch.h"

// Number of threads that parallel_for uses when it is not told: what dragoman_own_threads says,
// else torch.set_num_threads or OMP_NUM_THREADS.
DRAGOMAN_EXPORT int dragoman_threads();

// task(context, index) for every index below count, each claimed by whichever thread is free.
// threads = 0: as many as dragoman_threads() says; 1: here and now, without any other thread.
DRAGOMAN_EXPORT void dragoman_run(int64_t count, void (*task)(void *, int64_t), void *context,
                                  int threads);

// Memory of at least `bytes` (64-byte aligned) that belongs to the calling thread and is kept for
// its next call; what it held before is lost when it grows. `slot` (0-7) tells blocks apart.
DRAGOMAN_EXPORT void *dragoman_scratch(int slot, size_t bytes);

namespace {

// body(index) for every index below count. Results must not depend on which thread did what:
// sum per index, then add up in order.
template <class Body>
static inline void parallel_for(int64_t count, const Body &body, int threads = 0) {
  struct Call {
    static void run(void *context, int64_t index) {
      (*static_cast<const Body *>(context))(index);
    }
  };
  dragoman_run(count, &Call::run, const_cast<Body *>(&body), threads);
}

template <class T>
static inline T *scratch(int slot, size_t count) {
  return static_cast<T *>(dragoman_scratch(slot, count * sizeof(T)));
}

}  // namespace
