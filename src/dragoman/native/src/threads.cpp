// The threads behind threads.h: torch's OpenMP team, or a pool of our own.
#include "threads.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace {

using OpenMpParallel = void (*)(void (*)(void *), void *, unsigned, unsigned);
using OpenMpThreads = int (*)();

OpenMpParallel openmp_parallel = nullptr;
OpenMpThreads openmp_threads = nullptr;
thread_local int asked_threads = 0;

struct Job {
  int64_t count;
  void (*task)(void *, int64_t);
  void *context;
  std::atomic<int64_t> next{0};

  void work() {
    for (int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) task(context, i);
  }
};

void work_on(void *job) { static_cast<Job *>(job)->work(); }

// Our own pool. One job at a time; whoever comes while it is busy works alone.
//
// A worker that has not begun is not waited for: where other programs want the cores too it may
// stand still for milliseconds, and the caller does the work meanwhile (OpenMP's team waits for
// each of its members, so that one busy core made training slower than one thread alone).
struct Pool {
  alignas(64) std::atomic<int> generation{0};  // odd while a job is open
  alignas(64) std::atomic<int> inside{0};      // workers that may be touching the job
  alignas(64) std::atomic<int> asleep{0};      // workers that have to be woken
  std::atomic<int> caller_sleeps{0};
  std::atomic<int> places{0};  // workers that may still join
  Job *job = nullptr;
  pthread_mutex_t owner = PTHREAD_MUTEX_INITIALIZER;
  int started = 0;
  pid_t process = 0;
} pool;

// Looks at a word before sleeping on it, some 30 microseconds: a training step has its next job
// sooner than that, and waking costs as much. Five times more takes a core from those who need it.
constexpr int LOOKS = 2000;

void pause_a_moment() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");  // some tens of cycles; yield is one
#endif
}

template <class Done>
bool watch(const Done &done) {
  for (int looks = 0; looks < LOOKS; looks++) {
    if (done()) return true;
    pause_a_moment();
  }
  return done();
}

void sleep_while(std::atomic<int> &word, int value) {
  syscall(SYS_futex, reinterpret_cast<int *>(&word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake(std::atomic<int> &word, int sleepers) {
  syscall(SYS_futex, reinterpret_cast<int *>(&word), FUTEX_WAKE_PRIVATE, sleepers, nullptr, nullptr,
          0);
}

void *serve(void *) {
  asked_threads = 1;  // a job within a job is done here and now
  int seen = 0;
  for (;;) {
    if (!watch([&] { return pool.generation.load() != seen; })) {
      pool.asleep++;
      sleep_while(pool.generation, seen);
      pool.asleep--;
      continue;
    }
    seen = pool.generation.load();
    if (seen % 2 == 0) continue;
    pool.inside++;  // from here on the caller stays, unless it has closed the job already
    if (pool.generation.load() == seen && pool.places-- > 0) pool.job->work();
    if (--pool.inside == 0 && pool.caller_sleeps.load() != 0) wake(pool.inside, 1);
  }
  return nullptr;
}

void start_workers(int wanted) {
  if (pool.process != getpid()) {  // first use, or a forked child, which has no threads
    pool.process = getpid();
    pool.started = 0;
    pool.inside = 0;
    pool.asleep = 0;
    pool.generation = 0;
  }
  while (pool.started < wanted) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, serve, nullptr) != 0) break;
    pthread_detach(thread);
    pool.started++;
  }
}

void run_in_pool(Job &job, int threads) {
  if (pthread_mutex_trylock(&pool.owner) != 0) return job.work();
  start_workers(threads - 1);
  pool.job = &job;
  pool.places = threads - 1;
  pool.generation++;
  if (pool.asleep.load() != 0) wake(pool.generation, threads - 1);
  job.work();
  pool.generation++;
  if (!watch([] { return pool.inside.load() == 0; })) {
    pool.caller_sleeps = 1;
    for (int inside = pool.inside; inside != 0; inside = pool.inside) {
      sleep_while(pool.inside, inside);
    }
    pool.caller_sleeps = 0;
  }
  pthread_mutex_unlock(&pool.owner);
}

struct Scratch {
  void *block[8] = {};
  size_t size[8] = {};
  ~Scratch() {
    for (void *b : block) free(b);
  }
};

thread_local Scratch kept;

}  // namespace

// Use the OpenMP runtime found among the loaded libraries (or given: null asks the linker).
// Returns 1 when there is one.
DRAGOMAN_EXPORT int dragoman_use_openmp(void *parallel, void *max_threads) {
  if (parallel == nullptr) parallel = dlsym(RTLD_DEFAULT, "GOMP_parallel");
  if (max_threads == nullptr) max_threads = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
  const bool both = parallel != nullptr && max_threads != nullptr;
  openmp_parallel = both ? reinterpret_cast<OpenMpParallel>(parallel) : nullptr;
  openmp_threads = both ? reinterpret_cast<OpenMpThreads>(max_threads) : nullptr;
  return both;
}

// The calling thread's jobs run on so many threads of our own pool; 0: on torch's again.
DRAGOMAN_EXPORT void dragoman_own_threads(int threads) { asked_threads = threads; }

DRAGOMAN_EXPORT int dragoman_threads() {
  if (asked_threads > 0) return asked_threads;
  if (openmp_threads != nullptr) return openmp_threads();
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores > 0 ? static_cast<int>(cores) : 1;
}

DRAGOMAN_EXPORT void dragoman_run(int64_t count, void (*task)(void *, int64_t), void *context,
                                  int threads) {
  if (count <= 0) return;
  if (threads == 0) threads = dragoman_threads();
  if (threads > count) threads = static_cast<int>(count);
  if (threads <= 1) {
    for (int64_t i = 0; i < count; i++) task(context, i);
    return;
  }
  Job job;
  job.count = count;
  job.task = task;
  job.context = context;
  if (openmp_parallel != nullptr && asked_threads == 0) {
    openmp_parallel(work_on, &job, static_cast<unsigned>(threads), 0);
  } else {
    run_in_pool(job, threads);
  }
}

DRAGOMAN_EXPORT void *dragoman_scratch(int slot, size_t bytes) {
  if (kept.size[slot] < bytes) {
    free(kept.block[slot]);
    // An odd multiple of 64 bytes keeps blocks of a power of two off the same cache sets.
    size_t size = (bytes + bytes / 4 + 4095) / 4096 * 4096 + 192;
    size = (size + 63) / 64 * 64;
    void *block = nullptr;
    if (posix_memalign(&block, 64, size) != 0) abort();
    kept.block[slot] = block;
    kept.size[slot] = size;
  }
  return kept.block[slot];
}
