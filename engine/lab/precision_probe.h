// Looks at the values of one step in low precision next to those of the same step in float32, while both run.
//
// The float32 step runs first and leaves a sample of each value under its key; the other one is compared with that as its
// instructions run. Values that only one of the plans computes are counted, not compared; nor is what is zero up to rounding
// in float32 (summed_terms.h): its error is taken for that of what it was made from.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/lab/summed_terms.h"
#include "engine/profile/exponent_histogram.h"
#include "engine/snapshot/precision.pb.h"
#include "engine/step/stepper.h"

namespace stepscope {

// Largest number of elements of one value that are compared; of larger ones evenly spaced elements.
inline constexpr std::int64_t kPrecisionSample = 1 << 14;

class PrecisionProbe {
 public:
  // For RunOptions::after of the float32 step, and then of the other one. The steppers outlive the probe.
  Status reference(const Stepper& stepper, int instruction);
  Status compared(const Stepper& stepper, int instruction);

  // What a value was summed up from in the float32 step, if one node summed it up: itself, or what it is a view, a cast or a
  // permutation of.
  std::optional<SummedTerms> termsOf(const Stepper& reference, ValueId id) const;

  std::vector<snapshot::PrecisionClass> classes() const;
  // Nodes that compute in a low type, what adds most first. `plain`: the graph that option precision.force chooses from.
  std::vector<snapshot::PrecisionNode> nodes(const Stepper& stepper, const Graph& plain) const;

 private:
  struct Sample {
    std::vector<float> elements;
    std::int64_t notFinite = 0, total = 0;
    std::optional<SummedTerms> summed;
  };
  // Of a value of the compared step.
  struct Found {
    double error = 0;
    bool overflowed = false;  // holds more that is not finite than the float32 step
  };
  struct Class {
    std::string tensors;
    DType dtype = DType::kUndefined;
    int values = 0;
    std::int64_t compared = 0, flushed = 0;
    ExponentHistogram own, reference;
  };
  // What an instruction added to the error of what it read.
  struct Added {
    NodeId node;
    double error = 0;
    std::int64_t notFinite = 0;
    DType dtype = DType::kUndefined;
  };
  Class& classOf(const ExecutionPlan& plan, int buffer, DType dtype);
  Found readBy(const Graph& graph, const Node& node) const;
  Found compare(const Sample& sample, const TensorView& view, Class* into, std::int64_t* notFinite) const;

  std::unordered_map<ValueKey, Sample> samples_;
  std::unordered_map<std::int32_t, Found> found_;  // by value id of the compared step
  std::vector<Class> classes_;
  std::vector<Added> added_;
};

}  // namespace stepscope
