#include "kernels/cpu/linear/depthwise.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/cpu/channels/lanes.h"
#include "kernels/cpu/dnnl_support.h"
#include "kernels/fixed_parts.h"

namespace stepscope::cpu {
namespace {

// One image of sixteen channels: rows of `width` pixels, sixteen floats each.
struct Planes {
  const float* x = nullptr;
  const float* dy = nullptr;
  std::int64_t xWidth = 0, dyWidth = 0, stride = 1, dilation = 1, left = 0;  // left: pixels of padding
};

// A range of output rows for which all taps of the rows [tapRow, tapRow + R) lie inside x; xRow: the row of x under the
// first of both.
struct Band {
  std::int64_t begin = 0, end = 0, xRow = 0, rowStride = 1, rowDilation = 1;
};

// sums[r][t] += dy[row, o] · x[row under tap row r, o*stride - left + (first + t)*dilation] for R rows of T taps.
template <int R, int T>
SS_INLINE void addTaps(const Planes& p, const Band& band, std::int64_t first, float* sums) {
  Floats sum[R][T];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) load(sums + (r * T + t) * kLanes, sum[r][t]);
  const std::int64_t shift = first * p.dilation - p.left;
  // Outputs [inside, outside) have all T taps inside x.
  const std::int64_t inside = std::min(p.dyWidth, shift >= 0 ? 0 : (-shift + p.stride - 1) / p.stride);
  const std::int64_t last = p.xWidth - 1 - shift - (T - 1) * p.dilation;
  const std::int64_t outside = std::max(inside, std::min(p.dyWidth, last < 0 ? 0 : last / p.stride + 1));
  for (std::int64_t row = band.begin; row < band.end; ++row) {
    const float* dy = p.dy + row * p.dyWidth * kLanes;
    const float* x = p.x + (band.xRow + (row - band.begin) * band.rowStride) * p.xWidth * kLanes;
    const std::int64_t nextRow = band.rowDilation * p.xWidth * kLanes, tap = p.dilation * kLanes;
    const auto edge = [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t o = from; o < to; ++o) {
        Floats d;
        load(dy + o * kLanes, d);
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
          const std::int64_t column = o * p.stride + shift + t * p.dilation;
          if (column < 0 || column >= p.xWidth) continue;
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r) {
            Floats v;
            load(x + r * nextRow + column * kLanes, v);
            sum[r][t] += d * v;
          }
        }
      }
    };
    edge(0, inside);
    const float* under = x + (inside * p.stride + shift) * kLanes;
    for (std::int64_t o = inside; o < outside; ++o, under += p.stride * kLanes) {
      Floats d;
      load(dy + o * kLanes, d);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int t = 0; t < T; ++t) {
          Floats v;
          load(under + r * nextRow + t * tap, v);
          sum[r][t] += d * v;
        }
    }
    edge(outside, p.dyWidth);
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int t = 0; t < T; ++t) store(sum[r][t], sums + (r * T + t) * kLanes);
}

constexpr int kMostTaps = 7;  // of one row at a time

SS_LANE_CLONES void addRow(const Planes& p, const Band& band, std::int64_t first, std::int64_t taps, float* sums) {
  switch (taps) {
    case 1: return addTaps<1, 1>(p, band, first, sums);
    case 2: return addTaps<1, 2>(p, band, first, sums);
    case 3: return addTaps<1, 3>(p, band, first, sums);
    case 4: return addTaps<1, 4>(p, band, first, sums);
    case 5: return addTaps<1, 5>(p, band, first, sums);
    case 6: return addTaps<1, 6>(p, band, first, sums);
    default: return addTaps<1, kMostTaps>(p, band, first, sums);
  }
}
// Windows of 3 x 3 and 5 x 5 keep all their sums in registers, of 7 x 7 three rows of them.
SS_LANE_CLONES void addRows(const Planes& p, const Band& band, std::int64_t taps, float* sums) {
  if (taps == 3)
    addTaps<3, 3>(p, band, 0, sums);
  else if (taps == 5)
    addTaps<5, 5>(p, band, 0, sums);
  else
    addTaps<3, 7>(p, band, 0, sums);
}
std::int64_t rowsTogether(std::int64_t taps) { return taps == 3 || taps == 7 ? 3 : taps == 5 ? 5 : 1; }

// Pixels of up to sixteen plain channels side by side; lanes without a channel are 0.
void gatherLanes(const float* from, std::int64_t size, std::int64_t channels, float* to) {
  constexpr std::int64_t kTile = 16;
  for (std::int64_t begin = 0; begin < size; begin += kTile) {
    const std::int64_t end = std::min(size, begin + kTile);
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      for (std::int64_t i = begin; i < end; ++i) to[i * kLanes + lane] = lane < channels ? from[lane * size + i] : 0.0F;
  }
}

class DepthwiseWeightGrad final : public Kernel {
 public:
  DepthwiseWeightGrad(const ConvGeometry& g, const DepthwiseOperands& operands, int threads, bool fixed)
      : operands_(operands),
        batch_(g.batch),
        channels_(g.inChannels),
        blocks_((channels_ + kLanes - 1) / kLanes),
        threads_(fixed ? kFixedParts : threads),
        fixed_(fixed),
        team_(threadsForFlops(2.0 * static_cast<double>(g.batch * g.outSize()) * static_cast<double>(g.kernelSize()) *
                                  static_cast<double>(g.inChannels),
                              threads)) {
    const bool flat = g.in.size() == 1;
    if (!flat) rows_ = g.window.axes[0];
    columns_ = g.window.axes.back();
    xHeight_ = flat ? 1 : g.in[0];
    dyHeight_ = flat ? 1 : g.out[0];
    xWidth_ = g.in.back();
    dyWidth_ = g.out.back();
    taps_ = rows_.kernel * columns_.kernel;
    // Few blocks of channels do not divide evenly: then every thread takes its share of the images.
    shares_ = blocks_ % threads_ == 0 || blocks_ >= 8 * threads_ ? 1 : std::min<std::int64_t>(threads_, batch_);
    const auto floats = [](std::int64_t n) { return static_cast<std::size_t>(n) * sizeof(float); };
    for (std::int64_t t = 0; t < threads_; ++t) {
      if (operands_.xLayout == Layout::kPlain) xCopies_.push_back(layout_.add(floats(xHeight_ * xWidth_ * kLanes)));
      if (operands_.dyLayout == Layout::kPlain) dyCopies_.push_back(layout_.add(floats(dyHeight_ * dyWidth_ * kLanes)));
      imageSums_.push_back(layout_.add(floats(taps_ * kLanes)));
    }
    sums_ = layout_.add(static_cast<std::size_t>(blocks_ * shares_ * taps_ * kLanes) * sizeof(double));
  }

  std::size_t workspaceBytes() const override { return layout_.size(); }

  Status run(const KernelCall& call) override {
    auto* sums = reinterpret_cast<double*>(call.workspace.data() + sums_);
    const std::int64_t items = blocks_ * shares_, size = taps_ * kLanes;
#pragma omp parallel for schedule(static) num_threads(team_)
    for (int t = 0; t < threads_; ++t)
      for (std::int64_t item = items * t / threads_; item < items * (t + 1) / threads_; ++item) {
        double* own = sums + item * size;
        std::fill_n(own, size, 0.0);
        const std::int64_t block = item / shares_, share = item % shares_;
        for (std::int64_t n = batch_ * share / shares_; n < batch_ * (share + 1) / shares_; ++n)
          addImage(call, static_cast<std::size_t>(t), block, n, own);
      }
    auto* dw = static_cast<float*>(call.outputs[0].data);
    for (std::int64_t c = 0; c < channels_; ++c)
      for (std::int64_t tap = 0; tap < taps_; ++tap) {
        double sum = 0;
        for (std::int64_t share = 0; share < shares_; ++share)
          sum += sums[((c / kLanes * shares_ + share) * taps_ + tap) * kLanes + c % kLanes];
        dw[c * taps_ + tap] = static_cast<float>(sum);
      }
    return {};
  }
  std::string implementation() const override { return "depthwise sums in 16 lanes"; }
  Determinism determinism() const override {
    return batch_ > 1 && !fixed_
               ? Determinism::perThread("where channels do not divide evenly, every thread sums its share of images")
               : Determinism::fixed();
  }

 private:
  const float* plane(const KernelCall& call, std::size_t input, Layout layout, std::int64_t size, std::int64_t block,
                     std::int64_t n, std::size_t copy) const {
    const auto* data = static_cast<const float*>(call.inputs[input].data);
    if (layout == Layout::kChannels16) return data + (n * blocks_ + block) * size * kLanes;
    auto* to = reinterpret_cast<float*>(call.workspace.data() + copy);
    gatherLanes(data + (n * channels_ + block * kLanes) * size, size, std::min(kLanes, channels_ - block * kLanes), to);
    return to;
  }

  void addImage(const KernelCall& call, std::size_t thread, std::int64_t block, std::int64_t n, double* sums) const {
    auto* image = reinterpret_cast<float*>(call.workspace.data() + imageSums_[thread]);
    std::fill_n(image, taps_ * kLanes, 0.0F);
    const Planes planes{
        plane(call, operands_.x, operands_.xLayout, xHeight_ * xWidth_, block, n, xCopies_.empty() ? 0 : xCopies_[thread]),
        plane(call, operands_.dy, operands_.dyLayout, dyHeight_ * dyWidth_, block, n,
              dyCopies_.empty() ? 0 : dyCopies_[thread]),
        xWidth_,
        dyWidth_,
        columns_.stride,
        columns_.dilation,
        columns_.padBegin};
    const std::int64_t together = rowsTogether(columns_.kernel);
    for (std::int64_t row = 0; row < rows_.kernel;) {
      const std::int64_t count = together > 1 && row + together <= rows_.kernel ? together : 1;
      // Rows of taps that stand together meet x together in the middle; at its upper and lower edge each by itself.
      Band middle = bandOf(row, row + count - 1);
      if (count > 1 && middle.begin < middle.end) {
        addRows(planes, middle, columns_.kernel, image + row * columns_.kernel * kLanes);
      } else {
        middle.begin = middle.end = 0;
      }
      for (std::int64_t r = row; r < row + count; ++r) {
        const Band all = bandOf(r, r);
        Band above = all, below = all;
        if (middle.begin < middle.end) {
          above.end = std::min(all.end, middle.begin);
          below.begin = std::max(all.begin, middle.end);
          below.xRow += (below.begin - all.begin) * rows_.stride;
        } else {
          below.begin = below.end;
        }
        for (const Band& band : {above, below})
          for (std::int64_t first = 0; band.begin < band.end && first < columns_.kernel; first += kMostTaps)
            addRow(planes, band, first, std::min<std::int64_t>(kMostTaps, columns_.kernel - first),
                   image + (r * columns_.kernel + first) * kLanes);
      }
      row += count;
    }
    for (std::int64_t i = 0; i < taps_ * kLanes; ++i) sums[i] += image[i];
  }

  // The output rows for which the taps of rows first … last all lie inside x.
  Band bandOf(std::int64_t first, std::int64_t last) const {
    const std::int64_t low = rows_.padBegin - first * rows_.dilation,
                       high = xHeight_ - 1 + rows_.padBegin - last * rows_.dilation;
    Band band;
    band.begin = low <= 0 ? 0 : (low + rows_.stride - 1) / rows_.stride;
    band.end = std::max(band.begin, std::min(dyHeight_, high < 0 ? 0 : high / rows_.stride + 1));
    band.xRow = band.begin * rows_.stride - low;
    band.rowStride = rows_.stride;
    band.rowDilation = rows_.dilation;
    return band;
  }

  DepthwiseOperands operands_;
  std::int64_t batch_, channels_, blocks_, shares_ = 1;
  WindowAxis rows_, columns_;
  std::int64_t xHeight_ = 1, xWidth_ = 1, dyHeight_ = 1, dyWidth_ = 1, taps_ = 1;
  int threads_;  // shares of the work
  bool fixed_;   // whatever the number of threads is
  int team_;     // who computes them
  WorkspaceLayout layout_;
  std::vector<std::size_t> xCopies_, dyCopies_, imageSums_;  // by share
  std::size_t sums_ = 0;                                     // double[blocks][shares][taps][16]
};

}  // namespace

bool isDepthwise(const ConvGeometry& g) {
  return g.groups > 1 && g.groups == g.inChannels && g.groups == g.outChannels && g.in.size() <= 2;
}

std::unique_ptr<Kernel> makeDepthwiseWeightGrad(const ConvGeometry& geometry, const DepthwiseOperands& operands,
                                                int threads) {
  return std::make_unique<DepthwiseWeightGrad>(geometry, operands, threads, FixedParts::here());
}

}  // namespace stepscope::cpu
