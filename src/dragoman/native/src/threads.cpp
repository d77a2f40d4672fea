// The pool behind threads.h: torch's OpenMP threads if it has any, else our own.
#include "threads.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

namespace {

using OpenMpParallel = void (*)(void (*)(void *), void *, unsigned, unsigned);
using OpenMpThreads = int (*)();

OpenMpParallel openmp_parallel = nullptr;
OpenMpThreads openmp_threads = nullptr;
std::atomic<int> asked_threads{0};

struct Job {
  int64_t count;
  void (*task)(void *, int64_t);
  void *context;
  std::atomic<int64_t> next{0};
  std::atomic<int> working{0};

  void work() {
    for (int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) task(context, i);
  }
};

void work_on(void *job) { static_cast<Job *>(job)->work(); }

// Our own pool, used where no OpenMP runtime is loaded. One job at a time; whoever comes while it
// is busy works alone.
struct Pool {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
  pthread_cond_t done = PTHREAD_COND_INITIALIZER;
  pthread_mutex_t owner = PTHREAD_MUTEX_INITIALIZER;
  Job *job = nullptr;
  int wanted = 0;
  int started = 0;
  pid_t process = 0;
} pool;

void *serve(void *) {
  pthread_mutex_lock(&pool.lock);
  for (;;) {
    while (pool.job == nullptr || pool.wanted == 0) pthread_cond_wait(&pool.wake, &pool.lock);
    Job *job = pool.job;
    pool.wanted--;
    job->working++;
    pthread_mutex_unlock(&pool.lock);
    job->work();
    pthread_mutex_lock(&pool.lock);
    if (--job->working == 0) pthread_cond_signal(&pool.done);
  }
  return nullptr;
}

void run_in_pool(Job &job, int threads) {
  if (pthread_mutex_trylock(&pool.owner) != 0) return job.work();
  if (pool.process != getpid()) {  // first use, or a forked child, which has no threads
    pool.process = getpid();
    pool.started = 0;
  }
  while (pool.started < threads - 1) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, serve, nullptr) != 0) break;
    pthread_detach(thread);
    pool.started++;
  }
  pthread_mutex_lock(&pool.lock);
  pool.job = &job;
  pool.wanted = threads - 1 < pool.started ? threads - 1 : pool.started;
  pthread_cond_broadcast(&pool.wake);
  pthread_mutex_unlock(&pool.lock);
  job.work();
  pthread_mutex_lock(&pool.lock);
  pool.job = nullptr;
  pool.wanted = 0;
  while (job.working != 0) pthread_cond_wait(&pool.done, &pool.lock);
  pthread_mutex_unlock(&pool.lock);
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

// Go back to threads of our own.
DRAGOMAN_EXPORT void dragoman_forget_openmp() {
  openmp_parallel = nullptr;
  openmp_threads = nullptr;
}

// How many threads our own pool uses (0: as many as there are cores). Also a cap for OpenMP's.
DRAGOMAN_EXPORT void dragoman_set_threads(int threads) { asked_threads = threads; }

DRAGOMAN_EXPORT int dragoman_threads() {
  const int asked = asked_threads;
  if (openmp_threads != nullptr) {
    const int threads = openmp_threads();
    return asked > 0 && asked < threads ? asked : threads;
  }
  if (asked > 0) return asked;
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
  if (openmp_parallel != nullptr) {
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
