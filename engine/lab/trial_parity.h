// How far a tried plan's first step is from that of the step as it is: loss, every gradient, every parameter.
#pragma once

#include <map>
#include <string>

#include "engine/lab/trial_lane.h"
#include "engine/snapshot/lab.pb.h"

namespace stepscope {

class TrialParity {
 public:
  // Steps `base` once and keeps what it computes. Errors: those of the step.
  Status keep(TrialLane& base);
  // Steps `other` once and compares; gradients that it does not compute as values of their own are told in `parity`. Errors:
  // those of the step.
  Status compare(TrialLane& other, snapshot::TrialParity& parity) const;

 private:
  void compareGradient(const std::string& name, const Tensor& found, double factor, snapshot::TrialParity& parity,
                       bool& bits) const;
  void compareParameters(const TrialLane& other, snapshot::TrialParity& parity, bool& bits) const;

  double loss_ = 0;
  double factor_ = 1;   // of the gradients
  double squares_ = 0;  // of all elements of all gradients
  std::map<std::string, Tensor> gradients_, parameters_;
};

// Steps the lane's first batch, and tells how long it took (lastNs).
Status lookAt(TrialLane& lane, const TrialLane::EachGradient& gradientIsMade);

}  // namespace stepscope
