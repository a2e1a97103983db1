// Values that go to places which several of them may name, combined in a fixed order. Each value has a key, the number of
// its place. The keys are sorted with the numbers of their values, four bits in a pass and those of equal keys in their
// order, so that the values of one place lie side by side (a segment). One thread then combines a segment, so the bits are
// those of a loop over the values, whatever the order of threads.
//
// A kernel that uses it asks for bytes() of workspace and launches: startResult, a kernel of its own that writes every key,
// sortSegments, combineSegments.
#pragma once

#include "kernels/cuda/support.h"

namespace stepscope::cuda {

struct Segments {
  std::int64_t count = 0;   // keys, which lie at the beginning of the workspace
  std::int64_t places = 0;  // a key is 0 … places-1, or `places` for a value that goes nowhere
  std::int64_t run = 1;     // elements of a value and of a place
  int passes() const;       // of the sort
  std::int64_t tiles() const;
  std::size_t bytes() const;  // of workspace

  // Offsets in the workspace of keys and numbers before pass `pass`, and of the counts of digits.
  std::size_t keysAt(int pass) const;
  std::size_t numbersAt(int pass) const;
  std::size_t countsAt() const;
  Global<std::int64_t> keys(Launcher& gpu) const { return gpu.room<std::int64_t>(0, count); }
};

// How values are combined with what is at their place; a NaN wins in min and max.
enum class Combining { kReplace, kAdd, kMultiply, kSmaller, kLarger };

// Whether values of the type are combined so: any type but text is replaced, float32, int32 and int64 are calculated with.
bool canCombine(Combining how, DType dtype);

// Output 0 = input `from`, of as many bytes; zeros where `from` is negative. Nothing where both are the same memory.
Status startResult(Launcher& gpu, int from);
// Sorts keys that have been written.
Status sortSegments(Launcher& gpu, const Segments& segments);
// Combines input `values`: [count, run] with output 0: [places, run], of type `dtype`, in the order of the sorted keys.
Status combineSegments(Launcher& gpu, const Segments& segments, Combining how, DType dtype, std::size_t values);

}  // namespace stepscope::cuda
