// The optimizers of domain ai.onnx.preview.training. Inputs: R, T, then all parameters, all gradients, all of each state;
// outputs: new parameters, then new states.
#include <cmath>

#include "kernels/reference/elementwise/families.h"
#include "kernels/reference/elementwise/loops.h"
#include "kernels/reference/elementwise/optimizer.h"

namespace stepscope::reference {
namespace {

// One element of a parameter with its gradient and states, changed in place by a rule.
struct Cell {
  double x = 0, g = 0, state[2] = {};
};

template <std::size_t kStates, typename F>
Status forEachCell(const KernelSpec& spec, const KernelCall& call, F rule) {
  constexpr std::size_t kKinds = kStates + 2;
  if (call.inputs.size() < 2 || (call.inputs.size() - 2) % kKinds != 0)
    return invalid(spec.op + ": " + std::to_string(call.inputs.size()) + " inputs; 2 + " + std::to_string(kKinds) +
                   " per parameter");
  const std::size_t count = (call.inputs.size() - 2) / kKinds;
  for (std::size_t k = 0; k < count; ++k) {
    const auto input = [&](std::size_t kind) -> const TensorView& { return call.inputs[2 + kind * count + k]; };
    const auto output = [&](std::size_t i) { return i * count + k; };
    const std::int64_t elements = input(0).elements();
    for (std::size_t kind = 0; kind < kKinds; ++kind)
      if (!isFloating(input(kind).dtype) || input(kind).elements() != elements)
        return invalid(spec.op + ": operand of parameter " + std::to_string(k) + " has shape " + dimsText(input(kind).dims) +
                       "; floats " + dimsText(input(0).dims));
    for (std::size_t i = 0; i <= kStates; ++i)
      if (call.outputPresent(output(i)) && call.outputs[output(i)].elements() != elements)
        return invalid(spec.op + ": output of parameter " + std::to_string(k) + " has shape " +
                       dimsText(call.outputs[output(i)].dims) + "; " + dimsText(input(0).dims));
    for (std::int64_t i = 0; i < elements; ++i) {
      Cell cell{elementAsDouble(input(0), i), elementAsDouble(input(1), i)};
      for (std::size_t s = 0; s < kStates; ++s) cell.state[s] = elementAsDouble(input(2 + s), i);
      rule(cell);
      if (call.outputPresent(output(0))) storeElement(call.outputs[output(0)], i, cell.x);
      for (std::size_t s = 0; s < kStates; ++s)
        if (call.outputPresent(output(1 + s))) storeElement(call.outputs[output(1 + s)], i, cell.state[s]);
    }
  }
  return {};
}

struct Clock {
  double rate = 0, step = 0;
};

Result<Clock> clockOf(const KernelSpec& spec, const KernelCall& call) {
  for (std::size_t i = 0; i < 2; ++i)
    if (!call.inputPresent(i) || call.inputs[i].elements() != 1 || call.inputs[i].dtype == DType::kString)
      return invalid(spec.op + ": input " + std::to_string(i) + " is no scalar number; rate and step are");
  return Clock{elementAsDouble(call.inputs[0], 0), elementAsDouble(call.inputs[1], 0)};
}

Status momentum(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const Clock clock, clockOf(spec, call));
  const double alpha = decimalOf(spec.attrs.real("alpha", 0.0f)), beta = decimalOf(spec.attrs.real("beta", 0.0f));
  const double decay = decimalOf(spec.attrs.real("norm_coefficient", 0.0f));
  const bool nesterov = spec.attrs.text("mode", "standard") == "nesterov";
  return forEachCell<1>(spec, call, [&](Cell& c) {
    const double g = decay * c.x + c.g;
    c.state[0] = alpha * c.state[0] + (clock.step > 0 ? beta : 1) * g;
    c.x -= clock.rate * (nesterov ? g + alpha * c.state[0] : c.state[0]);
  });
}

Status adagrad(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const Clock clock, clockOf(spec, call));
  const double decay = decimalOf(spec.attrs.real("norm_coefficient", 0.0f)),
               epsilon = decimalOf(spec.attrs.real("epsilon", 1e-6f));
  const double rate = clock.rate / (1 + clock.step * decimalOf(spec.attrs.real("decay_factor", 0.0f)));
  return forEachCell<1>(spec, call, [&](Cell& c) {
    const double g = decay * c.x + c.g;
    c.state[0] += g * g;
    c.x -= rate * g / (std::sqrt(c.state[0]) + epsilon);
  });
}

Status adam(const KernelSpec& spec, const KernelCall& call) {
  SS_ASSIGN(const Clock clock, clockOf(spec, call));
  const double alpha = decimalOf(spec.attrs.real("alpha", 0.9f)), beta = decimalOf(spec.attrs.real("beta", 0.999f));
  const double decay = decimalOf(spec.attrs.real("norm_coefficient", 0.0f)),
               epsilon = decimalOf(spec.attrs.real("epsilon", 1e-6f));
  const double shrink = 1 - decimalOf(spec.attrs.real("norm_coefficient_post", 0.0f));
  double rate = clock.rate;
  if (clock.step > 0) rate *= std::sqrt(1 - std::pow(beta, clock.step)) / (1 - std::pow(alpha, clock.step));
  return forEachCell<2>(spec, call, [&](Cell& c) {
    const double g = decay * c.x + c.g;
    c.state[0] = alpha * c.state[0] + (1 - alpha) * g;
    c.state[1] = beta * c.state[1] + (1 - beta) * g * g;
    c.x = shrink * (c.x - rate * c.state[0] / (std::sqrt(c.state[1]) + epsilon));
  });
}

}  // namespace

std::span<const KernelEntry> previewOptimizerKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"ai.onnx.preview.training", "Adagrad", plain<adagrad>},
      {"ai.onnx.preview.training", "Adam", plain<adam>},
      {"ai.onnx.preview.training", "Momentum", plain<momentum>},
  };
  return kEntries;
}

}  // namespace stepscope::reference
