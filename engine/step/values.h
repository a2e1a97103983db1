// Looking at values of the step that runs, and changing them.
//
// Shapes and types are those of the value; a slice is given by its begin and extent on every axis. Errors name the value,
// what was found and what was expected; why a value is not there now is told by the message itself (fetchValue) or an error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "engine/snapshot/run.pb.h"
#include "engine/snapshot/tensor.pb.h"
#include "engine/step/stepper.h"

namespace stepscope {

// `begin` and `extent` select a slice; empty = everything, cut to `limit` elements.
Result<snapshot::TensorData> fetchValue(const Stepper& stepper, ValueId id, const std::vector<std::int64_t>& begin,
                                        const std::vector<std::int64_t>& extent, bool statistics, std::int64_t limit);

// One element, or with `fill` all of them. Integers and bool take only numbers that they can hold.
Status editValue(Stepper& stepper, ValueId id, const std::vector<std::int64_t>& index, double number, bool fill);
Status editData(Stepper& stepper, ValueId id, const TensorView& data);
// The contents of a .npy file of the value's shape, in its type or one that loses nothing.
Status editFromFile(Stepper& stepper, ValueId id, const std::filesystem::path& path);

// `id` compared with a .npy file or another value of its shape, whole, by the rule of engine/snapshot/number_rule.h.
Result<snapshot::ComparisonResult> compareWithFile(const Stepper& stepper, ValueId id, const std::filesystem::path& path);
Result<snapshot::ComparisonResult> compareWithValue(const Stepper& stepper, ValueId id, ValueId other);

// What each row contributes to the loss, as far as its values are in memory now.
snapshot::RowLosses rowLossesNow(const Stepper& stepper);

}  // namespace stepscope
