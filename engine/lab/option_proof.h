// What a change of options did to the numbers and the time of a step: the same step under the old and the new plan.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/build/options.h"
#include "engine/snapshot/worker.pb.h"
#include "engine/step/stepper.h"

namespace stepscope {

// How a step is run, not what it computes: two plans that differ in these leave the same numbers behind, or nearly (a low
// precision rounds them).
bool isOptimisation(std::string_view option);

// Options whose values differ, by name. `table`: what options there are, with their defaults.
std::vector<std::string> changedOptions(const TrainOptions& a, const TrainOptions& b, const std::vector<OptionInfo>& table);

// The value that was set, or the default.
std::string optionValue(const TrainOptions& options, const std::string& name, const std::vector<OptionInfo>& table);

// What the plan before the change, and the one after it, needs of memory: the peak of values alone, the arena with the
// workspaces of its kernels.
void setMemoryBefore(const Stepper& stepper, snapshot::OptionProof& proof);
void setMemoryAfter(const Stepper& stepper, snapshot::OptionProof& proof);

// Compares loss and state by bits, and tells both times.
void compareOutcomes(const StepOutcome& before, const StepOutcome& after, snapshot::OptionProof& proof);

// Compares what two steppers of one step hold where they stand: every computed value that both plans have in memory now.
// `position`: where `old` stood; what it wrote of the state was taken back since and is left out. The proof tells where
// `next` stands.
void compareSteppers(const Stepper& old, int position, const Stepper& next, snapshot::OptionProof& proof);

}  // namespace stepscope
