// SPDX-License-Identifier: Apache-2.0
// The kernels that op_bench measures, with the sizes of their operands.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernel.h"

namespace stepscope::op_bench {

using Source = std::function<Tensor()>;  // made when its benchmark runs

struct Case {
  std::string name, domain, op;
  Attributes attrs;
  std::vector<Source> inputs;
  std::vector<std::pair<DType, Dims>> outputs;
  double operations = 0;                 // of one run; 0: not counted
  int inPlace = -1;                      // the input that output 0 lies over
  std::vector<std::size_t> unread = {};  // inputs whose contents are not (or hardly) read
  int reads = 1;                         // passes over the inputs that the formula needs
  Layout layout = Layout::kPlain;        // of operands with four extents
};

// Contents by a fixed rule, equal in every run.
Source floats(Dims dims, float low = -2, float high = 2);
Source bools(Dims dims);
Source labels(Dims dims, std::int64_t count);  // of 0 to count - 1
Source scalar(DType dtype, double value);
Source ints(std::vector<std::int64_t> values);

// Of the layers of transformers and of convolutional networks, with those of smallerFamilies among them.
std::vector<Case> cases();
// Of quantised, generative, segmentation and detection models, and what else trains less often.
void smallerFamilies(std::vector<Case>& all);

}  // namespace stepscope::op_bench
