// SPDX-License-Identifier: Apache-2.0
//
// The language of device functions of plugins: CUDA C++ through names of our own, so that nvcc compiles a .cu file for a GPU
// and any C++17 compiler the same file for `--device emulated`, which checks every access, barrier and shuffle. One header
// beside stepscope_plugin.h, and nothing else.
//
//   // kernels.cu
//   #include "stepscope_device.h"
//   SSP_KERNEL twice(ssp::memory<const float> x, ssp::memory<float> y, int64_t count) {
//     const int64_t i = ssp::block_index() * ssp::block_size() + ssp::thread_index();
//     if (i < count) y[i] = 2 * x[i];
//   }
//
//   // plugin.cpp
//   #include "stepscope_plugin.h"
//   #include "kernels.cu"
//   SSP_IMAGE(kImage, "kernels.fatbin")   // where nvcc has made one: nvcc -fatbin -std=c++17 kernels.cu -o kernels.fatbin
//   static const ssp_device_function kFunctions[] = {ssp::function<twice>("twice")};
//   static ssp_status run(void*, const ssp_kernel_call* call) {
//     const int64_t count = …;
//     return ssp::launch<twice>(call, kFunctions[0], (count + 255) / 256, 256, ssp::in(0), ssp::out(0), count);
//   }
//
// A parameter is a number, a struct of numbers, memory, or the random key (ssp::random_key, for which ssp::key() is given).
// Elements of memory are floats and integers of 1, 2, 4 or 8 bytes.
// An exception of the emulator leaves a device function that did something wrong: it is not to be caught.
#ifndef STEPSCOPE_DEVICE_H
#define STEPSCOPE_DEVICE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "stepscope_plugin.h"

namespace ssp {

constexpr unsigned kFullWarp = 0xffffffffu;
template <typename T>
struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) four_of {
  T x, y, z, w;
};
template <typename T>
struct plain {
  using type = T;
};
template <typename T>
struct plain<const T> {
  using type = T;
};

}  // namespace ssp

#ifdef __CUDACC__

#define SSP_KERNEL extern "C" __global__ void
#define SSP_DEVICE __device__ __forceinline__
// An array that the threads of a block share. It holds nothing at first; in all threads or in none, in one order.
#define SSP_SHARED(T, name, count) __shared__ T name[count]

namespace ssp {

// Elements of an operand, or of a part of the scratch memory.
template <typename T>
class memory {
 public:
  using value = typename plain<T>::type;
  SSP_DEVICE bool present() const { return data_ != nullptr; }
  SSP_DEVICE T& operator[](int64_t i) const { return data_[i]; }
  // Four neighbours at once; i is a multiple of 4.
  SSP_DEVICE four_of<value> four(int64_t i) const { return *reinterpret_cast<const four_of<value>*>(data_ + i); }
  SSP_DEVICE void set_four(int64_t i, const four_of<value>& v) const { *reinterpret_cast<four_of<value>*>(data_ + i) = v; }
  // Returns what was there.
  SSP_DEVICE value atomic_add(int64_t i, value v) const { return ::atomicAdd(data_ + i, v); }

 private:
  T* data_;
};

// Where the thread is: in its block, and the block in the grid; and how large they are.
SSP_DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
SSP_DEVICE int block_size() { return static_cast<int>(blockDim.x); }
SSP_DEVICE int64_t block_index() { return blockIdx.x; }
SSP_DEVICE int64_t grid_size() { return gridDim.x; }
// Barriers: all threads of the block, or the lanes of the mask. They order accesses to memory; a shuffle does not.
SSP_DEVICE void sync_threads() { __syncthreads(); }
SSP_DEVICE bool sync_threads_or(bool vote) { return __syncthreads_or(vote) != 0; }
SSP_DEVICE void sync_warp(unsigned mask = kFullWarp) { __syncwarp(mask); }
// The value of another lane of the mask.
template <typename T>
SSP_DEVICE T shuffle(T value, int source, unsigned mask = kFullWarp) {
  return __shfl_sync(mask, value, source);
}
// The value of the lane whose number differs by the bits of `lanes`.
template <typename T>
SSP_DEVICE T shuffle_xor(T value, int lanes, unsigned mask = kFullWarp) {
  return __shfl_xor_sync(mask, value, lanes);
}
// Bit l: the vote of lane l.
SSP_DEVICE unsigned ballot(bool vote, unsigned mask = kFullWarp) { return __ballot_sync(mask, vote); }

// Seed, then step, where a recorded step has them.
SSP_DEVICE uint64_t word_of_key(const ssp_random_key& key, int word) { return static_cast<const uint64_t*>(key.now)[word]; }

}  // namespace ssp

#else  // for the emulator

// Memory of a launch, behind what `memory` holds.
typedef struct ssp_emulated_memory ssp_emulated_memory;

// What the host does for a thread. Whoever calls wrongly does not come back. [session], within a body only
struct ssp_emulator {
  uint32_t size;
  int32_t (*thread_index)(void);
  int32_t (*block_size)(void);
  int64_t (*block_index)(void);
  int64_t (*grid_size)(void);
  // The address of element `index`; `count` neighbours are read or written at once.
  const void* (*read)(const ssp_emulated_memory*, int64_t index, uint32_t count);
  void* (*write)(const ssp_emulated_memory*, int64_t index, uint32_t count);
  void* (*add_to)(const ssp_emulated_memory*, int64_t index);  // read and written by one atomic operation
  // `line`: where the call stands, for messages.
  int32_t (*barrier)(int32_t vote, int32_t line);  // 1: the vote of a thread is not 0
  void (*warp_barrier)(uint32_t mask, int32_t line);
  uint64_t (*shuffle)(uint32_t mask, uint64_t value, int32_t source, int32_t line);
  uint32_t (*ballot)(uint32_t mask, int32_t vote, int32_t line);
  // The array of the block that is declared where `key` stands.
  const ssp_emulated_memory* (*shared)(const void* key, int64_t count, uint32_t element_bytes);
};

#define SSP_KERNEL extern "C" __attribute__((visibility("hidden"))) void
#define SSP_DEVICE inline
#define SSP_SHARED(T, name, count)         \
  static constexpr char sspKey_##name = 0; \
  const ::ssp::memory<T> name(::ssp::emulator->shared(&sspKey_##name, count, sizeof(T)))

namespace ssp {

static const ssp_emulator* emulator = nullptr;  // of the launch that runs; not inline, so that the library can be unloaded

// What memory[i] is: reads as a value, and takes one.
template <typename T>
class element {
 public:
  using value = typename plain<T>::type;
  element(const ssp_emulated_memory* from, int64_t i) : from_(from), i_(i) {}
  operator value() const { return *static_cast<const value*>(emulator->read(from_, i_, 1)); }
  const element& operator=(value v) const {
    *static_cast<value*>(emulator->write(from_, i_, 1)) = v;
    return *this;
  }
  const element& operator=(const element& other) const { return *this = static_cast<value>(other); }
  const element& operator+=(value v) const { return *this = static_cast<value>(*this) + v; }
  const element& operator-=(value v) const { return *this = static_cast<value>(*this) - v; }
  const element& operator*=(value v) const { return *this = static_cast<value>(*this) * v; }

 private:
  const ssp_emulated_memory* from_;
  int64_t i_;
};

template <typename T>
class memory {
 public:
  using value = typename plain<T>::type;
  memory() = default;
  explicit memory(const ssp_emulated_memory* from) : from_(from) {}
  bool present() const { return from_ != nullptr; }
  element<T> operator[](int64_t i) const { return element<T>(from_, i); }
  four_of<value> four(int64_t i) const {
    const value* at = static_cast<const value*>(emulator->read(from_, i, 4));
    return {at[0], at[1], at[2], at[3]};
  }
  void set_four(int64_t i, const four_of<value>& v) const {
    value* at = static_cast<value*>(emulator->write(from_, i, 4));
    at[0] = v.x, at[1] = v.y, at[2] = v.z, at[3] = v.w;
  }
  value atomic_add(int64_t i, value v) const {
    value* at = static_cast<value*>(emulator->add_to(from_, i));
    const value before = *at;
    *at = before + v;
    return before;
  }

 private:
  const ssp_emulated_memory* from_;
};

inline int thread_index() { return emulator->thread_index(); }
inline int block_size() { return emulator->block_size(); }
inline int64_t block_index() { return emulator->block_index(); }
inline int64_t grid_size() { return emulator->grid_size(); }
inline void sync_threads(int line = __builtin_LINE()) { emulator->barrier(0, line); }
inline bool sync_threads_or(bool vote, int line = __builtin_LINE()) { return emulator->barrier(vote ? 1 : 0, line) != 0; }
inline void sync_warp(unsigned mask = kFullWarp, int line = __builtin_LINE()) { emulator->warp_barrier(mask, line); }
template <typename T>
T shuffle(T value, int source, unsigned mask = kFullWarp, int line = __builtin_LINE()) {
  static_assert(sizeof(T) <= 8, "a shuffle moves up to 8 bytes");
  uint64_t word = 0;
  memcpy(&word, &value, sizeof(T));
  word = emulator->shuffle(mask, word, source, line);
  memcpy(&value, &word, sizeof(T));
  return value;
}
template <typename T>
T shuffle_xor(T value, int lanes, unsigned mask = kFullWarp, int line = __builtin_LINE()) {
  return shuffle(value, (thread_index() % 32) ^ lanes, mask, line);
}
inline unsigned ballot(bool vote, unsigned mask = kFullWarp, int line = __builtin_LINE()) {
  return emulator->ballot(mask, vote ? 1 : 0, line);
}
inline uint64_t word_of_key(const ssp_random_key& key, int word) {
  return memory<const uint64_t>(static_cast<const ssp_emulated_memory*>(key.now))[word];
}

}  // namespace ssp

#endif  // __CUDACC__

namespace ssp {

struct random_words {
  uint32_t word[4];
};

// A parameter: the random key of the node in the step that runs. The numbers are those of ssp_random_words on the CPU.
class random_key {
 public:
  // Of elements 4 * block … 4 * block + 3.
  SSP_DEVICE random_words words(int64_t block) const {
    const bool recorded = key_.now != nullptr;
    random_words made;
    ssp_random_words(recorded ? word_of_key(key_, 0) : key_.seed, recorded ? word_of_key(key_, 1) : key_.step, key_.node,
                     static_cast<uint64_t>(block), made.word);
    return made;
  }
  // In [0, 1), of one element.
  SSP_DEVICE float uniform(int64_t element) const { return ssp_uniform(words(element / 4).word[element % 4]); }

 private:
  ssp_random_key key_;
};

}  // namespace ssp

#ifndef __CUDACC__

namespace ssp {

// --- what a plugin lists and launches

template <typename T>
struct argument {
  static ssp_argument of(const T& value) {
    return {sizeof(ssp_argument), SSP_ARGUMENT_VALUE, 0, 0, 0, 0, 0, &value, sizeof(T)};
  }
};
template <typename T>
struct argument<memory<T> > {
  static ssp_argument of(ssp_argument given) {
    given.element_bytes = sizeof(T);
    return given;
  }
};
template <>
struct argument<random_key> {
  static ssp_argument of(const ssp_argument& given) { return given; }
};
// What is given for a parameter: memory, the key, or a number that becomes one of the parameter's type.
template <typename T>
struct given {
  using type = T;
};
template <typename T>
struct given<memory<T> > {
  using type = ssp_argument;
};
template <>
struct given<random_key> {
  using type = ssp_argument;
};

template <auto kKernel>
struct body;
template <typename... P, void (*kKernel)(P...)>
struct body<kKernel> {
  template <int... I>
  struct places {};
  template <int kCount, int... I>
  struct upTo : upTo<kCount - 1, kCount - 1, I...> {};
  template <int... I>
  struct upTo<0, I...> {
    using type = places<I...>;
  };
  template <int... I>
  static void call(void* const* parameters, places<I...>) {
    (void)parameters;
    kKernel(*static_cast<P*>(parameters[I])...);
  }
  static void run(const ssp_emulator* host, void* const* parameters) {
    emulator = host;
    call(parameters, typename upTo<sizeof...(P)>::type());
  }
  static constexpr ssp_device_function listed(const char* name) {
    static_assert(sizeof...(P) <= SSP_MOST_PARAMETERS, "a device function has up to SSP_MOST_PARAMETERS parameters");
    return {sizeof(ssp_device_function), sizeof...(P), name, run, {static_cast<uint16_t>(sizeof(P))...}};
  }
  static ssp_status launch(const ssp_kernel_call* call, const ssp_device_function& function, uint64_t blocks,
                           uint32_t threads, const typename given<P>::type&... arguments) {
    const ssp_argument list[sizeof...(P) + 1] = {argument<P>::of(arguments)..., {}};
    const ssp_launch one = {sizeof(ssp_launch), threads, blocks, &function, list, sizeof...(P)};
    return call->launch(call, &one);
  }
};

// An entry of ssp_kernel.functions: ssp::function<twice>("twice").
template <auto kKernel>
constexpr ssp_device_function function(const char* name) {
  return body<kKernel>::listed(name);
}
// Puts a listed function on the stream of the call: an argument for each parameter.
template <auto kKernel, typename... A>
ssp_status launch(const ssp_kernel_call* call, const ssp_device_function& listed, int64_t blocks, int threads,
                  const A&... arguments) {
  return body<kKernel>::launch(call, listed, static_cast<uint64_t>(blocks), static_cast<uint32_t>(threads), arguments...);
}
// The random key of the run, for a parameter of type random_key.
inline ssp_argument key() { return {sizeof(ssp_argument), SSP_ARGUMENT_KEY, 0, 0, 0, 0, 0, nullptr, 0}; }
// Memory of an input, of an output, of scratch memory from byte `offset` on.
inline ssp_argument in(uint32_t index) {
  return {sizeof(ssp_argument), SSP_ARGUMENT_INPUT, SSP_ACCESS_READ, index, 0, 0, 0, nullptr, 0};
}
inline ssp_argument out(uint32_t index, int32_t access = SSP_ACCESS_WRITE) {
  return {sizeof(ssp_argument), SSP_ARGUMENT_OUTPUT, access, index, 0, 0, 0, nullptr, 0};
}
inline ssp_argument scratch(uint64_t offset, uint64_t count, int32_t access = SSP_ACCESS_WRITE) {
  return {sizeof(ssp_argument), SSP_ARGUMENT_SCRATCH, access, 0, 0, offset, count, nullptr, 0};
}

}  // namespace ssp

// The bytes of a file, a string literal that the compiler finds from where it is started: name, and name##_bytes.
#define SSP_IMAGE(name, file)                                                          \
  __asm__(".pushsection .rodata\n.balign 64\n" #name ":\n.incbin \"" file "\"\n" #name \
          "_end:\n.byte 0\n"                                                           \
          ".popsection");                                                              \
  extern "C" __attribute__((visibility("hidden"))) const unsigned char name[], name##_end[];

#endif  // not __CUDACC__
#endif  // STEPSCOPE_DEVICE_H
