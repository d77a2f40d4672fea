// Memory of the decoder: aligned, grown but never shrunk, on large pages where that pays.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

// Memory that is aligned to cache lines, or to large pages if it fills some. Not cleared.
static inline void* allocate(size_t bytes) {
  const size_t page = 2u << 20;
  const size_t alignment = bytes >= page ? page : 64;
  const size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, whole);
  if (memory == nullptr) std::abort();
#if defined(MADV_HUGEPAGE)
  if (alignment == page) madvise(memory, whole, MADV_HUGEPAGE);
#endif
  return memory;
}

// An array of plain values. Aligned to cache lines; new values are zero.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }

  // Room for `count` values; what was there is kept only if `keep` says so.
  void reserve(size_t count, bool keep = false) {
    if (count <= capacity_) return;
    if (keep && count < 2 * capacity_) count = 2 * capacity_;
    const size_t bytes = count * sizeof(T);
    void* fresh = allocate(bytes);
    std::memset(fresh, 0, bytes);
    if (keep && capacity_ > 0) std::memcpy(fresh, data_, capacity_ * sizeof(T));
    std::free(data_);
    data_ = static_cast<T*>(fresh);
    capacity_ = count;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  size_t capacity() const { return capacity_; }

 private:
  T* data_ = nullptr;
  size_t capacity_ = 0;
};

// A Buffer that knows how many of its values are in use.
template <class T>
class List {
 public:
  void push(T value) {
    buffer_.reserve(count_ + 1, true);
    buffer_[count_++] = value;
  }
  T pop() { return buffer_[--count_]; }
  void resize(size_t count) {
    buffer_.reserve(count, true);
    count_ = count;
  }
  void clear() { count_ = 0; }
  size_t size() const { return count_; }
  T* data() { return buffer_.data(); }
  const T* data() const { return buffer_.data(); }
  T& operator[](size_t i) { return buffer_[i]; }
  const T& operator[](size_t i) const { return buffer_[i]; }

 private:
  Buffer<T> buffer_;
  size_t count_ = 0;
};

}  // namespace
