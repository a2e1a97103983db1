// How long the instructions of one plan took in its newest steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/exec/executor.h"

namespace stepscope {

class StepTimes {
 public:
  static constexpr std::size_t kKept = 9;  // steps; odd, so that a median is one of them

  // Spans of a whole step of a plan with that many instructions; others are not taken. Allocates nothing once kKept are
  // held.
  void add(const std::vector<Span>& spans, std::size_t instructions);

  // Steps that count: the first one under a plan is warm-up, and only counts while it is the only one.
  std::int64_t steps() const { return added_ > 1 ? added_ - 1 : added_; }
  bool cold() const { return added_ == 1; }
  // Nanoseconds by instruction, 0 where it did not run; empty before the first step.
  std::vector<double> medians() const;
  // Sums over the instructions of the steps that are held, in no order; empty before the first step.
  std::vector<double> sums() const;

 private:
  std::vector<std::vector<std::int64_t>> kept_;
  std::int64_t added_ = 0;
};

// Of an odd number of values one of them, of an even one the mean of two; 0 for none.
double medianOf(std::vector<double> values);

}  // namespace stepscope
