// Sums over the positions of bfloat16 tensors whose channels lie last: rows of one element per channel. The rows are cut
// into parts whose number depends on their count alone, so that the bits are the same for any number of threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/channels/lanes.h"
#include "kernels/fixed_parts.h"

namespace stepscope::cpu {

struct ChannelRows {
  std::int64_t rows = 0, channels = 0;
  static ChannelRows of(const OperandSpec& x) { return {elementCount(x.dims) / x.dims[1], x.dims[1]}; }

  // Rows whose sums stay in float32; then they are added to sums in double.
  static constexpr std::int64_t kRun = 32;
  std::int64_t parts() const { return std::clamp<std::int64_t>(rows / kRun, 1, kFixedParts); }
  std::int64_t begin(std::int64_t part) const { return rows * part / parts(); }

  // Of two sums per channel: doubles of every part, and floats of the run that a part is in.
  std::size_t workspaceBytes() const {
    return static_cast<std::size_t>(parts() * channels) * 2 * (sizeof(double) + sizeof(float));
  }
  double* sums(std::byte* workspace, std::int64_t part) const {
    return reinterpret_cast<double*>(workspace) + 2 * part * channels;
  }
  float* run(std::byte* workspace, std::int64_t part) const {
    return reinterpret_cast<float*>(workspace + static_cast<std::size_t>(2 * parts() * channels) * sizeof(double)) +
           2 * part * channels;
  }
};

// body(first row, end row, floats of the run): adds to 2 x channels floats. Afterwards sums(workspace, 0) holds the sums of
// all rows, the first of each channel and then the second.
template <typename Body>
void sumRows(const ChannelRows& r, std::byte* workspace, int threads, Body&& body) {
  const std::int64_t parts = r.parts(), count = 2 * r.channels;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t part = 0; part < parts; ++part) {
    double* sums = r.sums(workspace, part);
    float* run = r.run(workspace, part);
    std::fill_n(sums, count, 0.0);
    for (std::int64_t row = r.begin(part), end = r.begin(part + 1); row < end; row += ChannelRows::kRun) {
      std::fill_n(run, count, 0.0F);
      body(row, std::min(row + ChannelRows::kRun, end), run);
      for (std::int64_t i = 0; i < count; ++i) sums[i] += run[i];
    }
  }
  double* total = r.sums(workspace, 0);
  for (std::int64_t part = 1; part < parts; ++part) {
    const double* more = r.sums(workspace, part);
    for (std::int64_t i = 0; i < count; ++i) total[i] += more[i];
  }
}

}  // namespace stepscope::cpu
