// What a comparison with PyTorch found, as a table, as JSON and as an alert.
#pragma once

#include <string>

#include "engine/lab/golden_check.h"
#include "engine/snapshot/run.pb.h"

namespace stepscope::cli {

// The table with what it found, or one event "tensor" per line and an event "verify".
void tellGolden(const GoldenReport& report, bool json);

// "PyTorch: loss and 12 gradients agree in fp32 (largest difference …)", with what was not compared: for a run that goes
// on. Not where something differs.
std::string goldenLine(const GoldenReport& report);

// The worst difference: name, size, place and likely cause. Not where all agree.
snapshot::Alert goldenAlert(const GoldenReport& report);

}  // namespace stepscope::cli
