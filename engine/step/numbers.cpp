#include "engine/step/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/profile/tensor_summary.h"
#include "engine/snapshot/alert.h"
#include "engine/snapshot/utf8.h"
#include "engine/step/stepper.h"
#include "kernels/cpu/loops/sum_of_squares.h"
#include "kernels/dispatch.h"

namespace stepscope {
namespace {

struct FoundNumber {
  std::int64_t element = -1;  // row-major; -1: there is none
  bool nan = false;
  const char* name() const { return nan ? "NaN" : "Inf"; }
};

FoundNumber firstIn(const TensorView& view, const NumberWatch& watch) {
  FoundNumber found;
  if (!view.present() || !isFloating(view.dtype) || !view.data) return found;
  dispatchFloat(view.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* data = static_cast<const T*>(view.data);
    for (std::int64_t i = 0; i < view.elements(); ++i) {
      const double x = static_cast<double>(data[i]);
      if (std::isfinite(x) || watch.find(x).empty()) continue;
      found = {i, std::isnan(x)};
      return;
    }
  });
  return found;
}

std::int64_t rowOf(const Dims& dims, std::int64_t element) {
  std::int64_t inner = 1;
  for (std::size_t axis = 1; axis < dims.size(); ++axis) inner *= dims[axis];
  return inner > 0 ? element / inner : 0;
}

// Rows of the batch; 0 when its arrays do not agree.
std::int64_t samplesOf(const Batch& batch) {
  std::int64_t samples = -1;
  for (const auto& [name, array] : batch.arrays) {
    if (array.dims().empty()) continue;
    if (samples >= 0 && samples != array.dims()[0]) return 0;
    samples = array.dims()[0];
  }
  return samples < 0 ? 0 : samples;
}

}  // namespace

std::string NumberWatch::find(double number) const {
  if (nan && std::isnan(number)) return "NaN";
  if (inf && std::isinf(number)) return "Inf";
  return {};
}

std::optional<double> gradientNormAt(const Executor& executor, const std::vector<ValueId>& gradients, int position,
                                     const std::map<ValueId, double>& sent) {
  double squares = 0;
  bool some = false;
  for (const ValueId id : gradients) {
    if (!id) continue;  // the loss does not depend on this parameter
    if (const auto known = sent.find(id); known != sent.end()) {
      squares += known->second;
      some = true;
      continue;
    }
    if (!executor.unavailable(id, position).empty()) return std::nullopt;
    const auto contents = executor.read(id);
    if (!contents || !isFloating(contents->dtype())) return std::nullopt;
    squares += cpu::sumOfSquares(contents->view(), executor.threads());
    some = true;
  }
  return some ? std::optional(std::sqrt(squares)) : std::nullopt;
}

bool isNextState(const Graph& graph, ValueId made) {
  return std::ranges::find(graph.stateUpdates, made, &StateUpdate::next) != graph.stateUpdates.end();
}

snapshot::Alert numberAlert(const Stepper& stepper, const NumberWatch& watch, int instruction,
                            const std::string& otherwise) {
  const Graph& graph = stepper.graph();
  const ExecutionPlan& plan = stepper.plan();
  snapshot::Alert alert = makeAlert(snapshot::Alert::ERROR, otherwise.find("NaN") != std::string::npos ? "nan" : "inf");
  alert.set_step(stepper.shownStep());
  alert.set_value(stepper.step().loss ? stepper.step().loss.index : -1);
  std::string text = otherwise;
  FoundNumber made;
  const auto nameOf = [&](ValueId id) { return toUtf8(graph.value(id).name); };
  if (instruction >= 0 && instruction < stepper.count()) {
    const Instruction& ran = plan.instructions[static_cast<std::size_t>(instruction)];
    for (const int out : ran.outputs) {
      if (out < 0 || made.element >= 0) continue;
      const ValueId id = plan.buffers[static_cast<std::size_t>(out)].value;
      const auto contents = stepper.executor().read(id);
      if (!contents) continue;
      made = firstIn(contents->view(), watch);
      if (made.element < 0) continue;
      alert.set_code(made.nan ? "nan" : "inf");
      alert.set_instruction(instruction);
      alert.set_node(ran.node.index);
      alert.set_value(id.index);
      text = fmt::format("{} in '{}', made by {} {}", made.name(), nameOf(id), instruction, toUtf8(graph.node(ran.node).op));
      const Dims& dims = contents->dims();
      if (!dims.empty() && dims[0] > 1 && dims[0] == samplesOf(stepper.batch()) && !isNextState(graph, id))
        alert.set_sample(rowOf(dims, made.element));
    }
  }
  // What came in with the batch, or was in the state before, was only carried on.
  for (const ValueId id : graph.inputs()) {
    const auto array = stepper.batch().arrays.find(graph.value(id).name);
    if (array == stepper.batch().arrays.end()) continue;
    const FoundNumber found = firstIn(array->second.view(), watch);
    if (found.element < 0) continue;
    const std::int64_t row = rowOf(array->second.dims(), found.element);
    alert.set_value(id.index);
    alert.set_sample(row);
    alert.set_message(fmt::format("{} in row {} of the batch: input '{}' of {}; {}", found.name(), row, nameOf(id),
                                  toUtf8(stepper.batch().label), text));
    return alert;
  }
  if (made.element >= 0) {
    for (const int in : plan.instructions[static_cast<std::size_t>(instruction)].inputs) {
      if (in < 0) continue;
      const ValueId id = plan.buffers[static_cast<std::size_t>(in)].value;
      const ValueRole role = graph.value(id).role;
      if (role != ValueRole::kInitializer && role != ValueRole::kState) continue;
      const auto contents = stepper.executor().read(id);
      if (!contents || firstIn(contents->view(), watch).element < 0) continue;
      text += fmt::format("; '{}' held one before the step", nameOf(id));
      break;
    }
  }
  if (alert.has_sample()) text += fmt::format("; first in row {} of the batch", alert.sample());
  alert.set_message(text);
  return alert;
}

}  // namespace stepscope
