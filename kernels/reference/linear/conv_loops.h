// The three loops of convolution over any element access: forward, input gradient, weight gradient.
//
// Indices are flat: x [N, C, in], w [M, C/group, taps], y [N, M, out]. Loads give double; `store` takes a sum.
#pragma once

#include "kernels/reference/linear/taps.h"

namespace stepscope::reference {

// store(index in y, output channel, sum of x · w)
template <typename X, typename W, typename Store>
void convForward(const ConvGeometry& g, X&& x, W&& w, Store&& store) {
  const std::int64_t inSize = g.inSize(), outSize = g.outSize(), kernelSize = g.kernelSize();
  const std::int64_t inGroup = g.inChannels / g.groups, outGroup = g.outChannels / g.groups;
  if (g.batch == 0 || g.outChannels == 0) return;
  std::vector<Tap> taps;
  for (std::int64_t o = 0; o < outSize; ++o) {
    tapsOfOutput(g.window, g.in, g.out, o, taps);
    for (std::int64_t n = 0; n < g.batch; ++n)
      for (std::int64_t m = 0; m < g.outChannels; ++m) {
        double sum = 0;
        for (std::int64_t c = 0; c < inGroup; ++c) {
          const std::int64_t xStart = (n * g.inChannels + m / outGroup * inGroup + c) * inSize;
          const std::int64_t wStart = (m * inGroup + c) * kernelSize;
          for (const Tap& tap : taps) sum += x(xStart + tap.position) * w(wStart + tap.tap, m);
        }
        store((n * g.outChannels + m) * outSize + o, m, sum);
      }
  }
}

// store(index in dx, input channel, sum of dy · w)
template <typename DY, typename W, typename Store>
void convInputGradient(const ConvGeometry& g, DY&& dy, W&& w, Store&& store) {
  const std::int64_t inSize = g.inSize(), outSize = g.outSize(), kernelSize = g.kernelSize();
  const std::int64_t inGroup = g.inChannels / g.groups, outGroup = g.outChannels / g.groups;
  if (g.batch == 0 || g.inChannels == 0) return;
  std::vector<Tap> taps;
  for (std::int64_t i = 0; i < inSize; ++i) {
    tapsOfInput(g.window, g.in, g.out, i, taps);
    for (std::int64_t n = 0; n < g.batch; ++n)
      for (std::int64_t c = 0; c < g.inChannels; ++c) {
        double sum = 0;
        for (std::int64_t k = 0; k < outGroup; ++k) {
          const std::int64_t m = c / inGroup * outGroup + k;
          const std::int64_t yStart = (n * g.outChannels + m) * outSize;
          const std::int64_t wStart = (m * inGroup + c % inGroup) * kernelSize;
          for (const Tap& tap : taps) sum += dy(yStart + tap.position) * w(wStart + tap.tap);
        }
        store((n * g.inChannels + c) * inSize + i, c, sum);
      }
  }
}

// store(index in dw, sum of dy · x)
template <typename DY, typename X, typename Store>
void convWeightGradient(const ConvGeometry& g, DY&& dy, X&& x, Store&& store) {
  const std::int64_t inSize = g.inSize(), outSize = g.outSize(), kernelSize = g.kernelSize();
  const std::int64_t inGroup = g.inChannels / g.groups, outGroup = g.outChannels / g.groups;
  if (outGroup == 0 || inGroup == 0) return;
  // Pairs (output position, input position) of every kernel tap.
  std::vector<std::vector<Tap>> meetings(static_cast<std::size_t>(kernelSize));
  std::vector<Tap> taps;
  for (std::int64_t o = 0; o < outSize; ++o) {
    tapsOfOutput(g.window, g.in, g.out, o, taps);
    for (const Tap& tap : taps) meetings[static_cast<std::size_t>(tap.tap)].push_back({o, tap.position});
  }
  for (std::int64_t m = 0; m < g.outChannels; ++m)
    for (std::int64_t c = 0; c < inGroup; ++c)
      for (std::int64_t t = 0; t < kernelSize; ++t) {
        double sum = 0;
        for (std::int64_t n = 0; n < g.batch; ++n) {
          const std::int64_t yStart = (n * g.outChannels + m) * outSize;
          const std::int64_t xStart = (n * g.inChannels + m / outGroup * inGroup + c) * inSize;
          for (const Tap& pair : meetings[static_cast<std::size_t>(t)])
            sum += dy(yStart + pair.tap) * x(xStart + pair.position);
        }
        store((m * inGroup + c) * kernelSize + t, sum);
      }
}

}  // namespace stepscope::reference
