// SPDX-License-Identifier: GPL-3.0-or-later
// The numbers of every step of a run, one column each: 48 bytes a step, whatever a step records besides.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/snapshot/run.pb.h"

namespace stepscope {

class StepSeries {
 public:
  std::size_t size() const { return step_.size(); }
  bool empty() const { return step_.empty(); }
  // Ascending. A step that is there already is replaced.
  void add(const snapshot::StepRecord& record);
  void dropFrom(std::int64_t step);
  void clear() { dropFrom(INT64_MIN); }

  // NaN where a step has none. The norm is the one computed in the step, else that of recorded gradients.
  const std::vector<std::int64_t>& step() const { return step_; }
  const std::vector<double>& loss() const { return loss_; }
  const std::vector<double>& rate() const { return rate_; }
  const std::vector<double>& norm() const { return norm_; }
  const std::vector<std::int64_t>& ns() const { return ns_; }
  const std::vector<std::int64_t>& cpuNs() const { return cpuNs_; }
  // Index of the step nearest to `step`; there is one.
  std::size_t nearest(double step) const;

 private:
  std::vector<std::int64_t> step_, ns_, cpuNs_;
  std::vector<double> loss_, rate_, norm_;
};

}  // namespace stepscope
