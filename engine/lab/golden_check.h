// The first step compared with what PyTorch computed of it: its loss, every gradient, and the updates of running statistics.
//
// The step runs beside the session (side_step.h): in float32, under the passes that the options choose, with an optimizer
// that changes nothing. What was captured with dropout switched off is compared with it switched off.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/lab/golden_rows.h"
#include "engine/lab/side_step.h"

namespace stepscope {

// Random numbers (dropout) that PyTorch drew for what is compared.
enum class GoldenDraws {
  kUnknown,      // the capture does not say
  kNone,         // it draws none
  kSwitchedOff,  // it would have; they were switched off for the comparison
  kDrawn,        // it drew some that cannot be switched off
};

// What PyTorch computed. Tensors have any floating type.
struct Golden {
  std::map<std::string, Tensor> gradients;   // of the first batch, by parameter
  std::map<std::string, Tensor> statistics;  // by buffer: what the first batch made of it
  std::map<std::string, Tensor> later;       // likewise, what the second batch then made of it; may be empty
  std::map<std::string, Tensor> outputs;     // by module path: what its forward pass returned; may be empty
  std::vector<double> losses;                // of batches at the captured parameters; may be empty
  std::optional<double> lossTolerance;
  std::map<std::string, double>
      tolerances;                // largest absolute difference, by "grad/NAME", "state/NAME", "state2/NAME", "output/NAME"
  std::set<std::string> unused;  // parameters whose gradient PyTorch did not even make (None)
  GoldenDraws draws = GoldenDraws::kUnknown;
  std::vector<std::string> notes;  // what of the program in PyTorch is not kept, in words
  double gradientFactor = 1;       // the gradients are those of the loss times this: 1 / N in a run that accumulates N steps
};

// `subject.start` is the captured state; `more` are the batches after the first, whose losses are compared too as far as
// the golden has them, and the first of them for Golden::later. Errors: those of building and running; kCancelled.
Result<GoldenReport> compareWithGolden(SideSubject subject, const std::vector<Batch>& more, const Golden& golden);

}  // namespace stepscope
