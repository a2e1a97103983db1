// Where the numbers of two recorded runs part: losses, gradient norms, and statistics of values where both runs have them.
//
// Steps are matched by their number, values by their name, each as last recorded. Two numbers agree by the rule of
// engine/snapshot/number_rule.h: |a - b| <= atol + rtol * |b|. Within a step the order is that of execution: inputs and
// state, forward values, loss, backward values, gradient norm, update.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/error.h"
#include "storage/project.h"
#include "storage/queries.h"

namespace stepscope::storage {

struct Tolerance {
  double rtol = 1e-5, atol = 1e-8;
};
bool agree(double a, double b, const Tolerance& tolerance);

struct Divergence {
  std::int64_t step = 0;
  // "loss", "gradient norm", or of a value the first of these that parts: "elements", "NaN", "Inf", "norm", "mean", "std",
  // "min", "max".
  std::string quantity;
  std::optional<double> a, b;  // both are there: what only one run measured is no divergence
  std::string phase;           // forward, backward, recompute, optimizer; empty when the graph does not tell
  std::string value;           // name of the value; empty for the numbers of the step
};

// The numbers of one step; empty where a run does not have them. Without clipping the norm of the gradients is that of the
// statistics which the step recorded.
struct StepNumbers {
  std::int64_t step = 0;
  std::optional<double> lossA, lossB, normA, normB;
};

// Of steps that both runs have: how many have a number of one run only.
struct Measured {
  std::int64_t onlyA = 0, onlyB = 0;
};

struct SharedSteps {
  std::int64_t both = 0, onlyA = 0, onlyB = 0;  // steps by number
  Measured loss, norm;
  std::int64_t statistics = 0;          // statistics of a value at a step that both runs have
  std::optional<Divergence> unequal;    // first pair that is not the same number
  std::optional<Divergence> tolerance;  // first pair outside the tolerance
  std::int64_t outside = 0;             // pairs outside the tolerance
  std::vector<Divergence> divergences;  // the first 1,000 of them
  std::vector<StepNumbers> numbers;     // of every step that either run has, ascending
};

// What was not compared because one run did not measure it: "B did not measure the gradient norm", with "in 3 of 10 steps"
// where it is not all of them. Empty: nothing.
std::string unmeasuredText(const SharedSteps& steps);

// Checks the tolerance (kInvalidArgument) and reads both runs; `a` and `b` may be one project.
Result<SharedSteps> compareSteps(const Project& a, std::int64_t runA, const std::vector<StepRow>& stepsA, const Project& b,
                                 std::int64_t runB, const std::vector<StepRow>& stepsB, const Tolerance& tolerance);

}  // namespace stepscope::storage
