// Subnormal numbers: floats below 2^-126, with which some processors compute many times slower.
#pragma once

namespace stepscope {

// Whether this processor can compute with zeros in their place.
bool canFlushSubnormals();

// While it lives, operands and results of float32 that are subnormal count as zero, in the calling thread and in the OpenMP
// threads of its teams of up to `threads`. With `flush` false it does nothing. What was set before is put back.
class SubnormalScope {
 public:
  SubnormalScope(bool flush, int threads);
  ~SubnormalScope();
  SubnormalScope(const SubnormalScope&) = delete;
  SubnormalScope& operator=(const SubnormalScope&) = delete;

 private:
  int threads_ = 0;  // 0: nothing to put back
  bool before_ = false;
};

}  // namespace stepscope
