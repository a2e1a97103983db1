// The variance that a running one takes of a batch, for all kernels of BatchNormalization.
//
//   running = running * momentum + factor * variance * (1 - momentum)
//
// variance: that of the population, by which the batch is normalised. factor: 1 as ONNX says (BatchNormalization-15), or
// with attribute sample_variance n / (n - 1), which makes it the variance of a sample, as PyTorch keeps it; n elements per
// channel.
#pragma once

namespace stepscope {

// One element has no variance of a sample: its own, 0, is taken as it is.
inline double runningVarianceFactor(bool sample, double n) { return sample && n > 1 ? n / (n - 1) : 1.0; }

}  // namespace stepscope
