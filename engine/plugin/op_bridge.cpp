#include "engine/plugin/op_bridge.h"

#include <fmt/format.h>

namespace stepscope {
namespace {

// The numbers of the ABI are one above those of the enumerations here where those begin with a value for nothing.
static_assert(static_cast<int>(OpCategory::kOptimizer) == SSP_CATEGORY_OPTIMIZER &&
              static_cast<int>(OpCategory::kOther) == SSP_CATEGORY_OTHER);
static_assert(static_cast<int>(Precision::kLow) == SSP_PRECISION_LOW &&
              static_cast<int>(Precision::kWide) == SSP_PRECISION_WIDE);
static_assert(static_cast<int>(Recompute::kCostly) + 1 == SSP_RECOMPUTE_COSTLY);

std::string labelOf(const PluginLibrary& library, const ssp_op& op, const char* function) {
  return library.label(fmt::format("{} of op '{}.{}'", function, op.domain, op.name));
}

OpDef definitionOf(const ssp_op& op, void* user) {
  OpDef def;
  def.name = op.name;
  def.domain = op.domain;
  def.sinceVersion = static_cast<int>(op.since_version);
  def.doc = op.doc;
  def.inputs = {op.least_inputs, op.most_inputs};
  def.outputs = {op.least_outputs, op.most_outputs};
  def.category = static_cast<OpCategory>(op.category);
  def.precision = static_cast<Precision>(op.precision);
  def.hostInputs = op.host_inputs;
  def.inferShape = inferPluginShape;
  if (op.gradient != nullptr) def.gradient = emitPluginGradient;
  if (op.no_gradient_reason != nullptr) def.noGradientReason = op.no_gradient_reason;
  def.differentiableInputs = op.differentiable_inputs;
  def.differentiableOutputs = op.differentiable_outputs;
  def.inPlaceInputs = op.in_place_inputs;
  def.recompute = static_cast<Recompute>(op.recompute - 1);
  if (op.side_effect != 0) def.sideEffect = SideEffect::kOutput;
  def.traffic.picked = op.picked_inputs;
  def.traffic.moves = op.moves != 0;
  def.user = user;
  return def;
}

}  // namespace

OpBridge::OpBridge(const PluginLibrary& owner, const ssp_op& declared)
    : library(owner),
      op(declared),
      shapeLabel(labelOf(owner, declared, "infer_shape")),
      gradientLabel(labelOf(owner, declared, "gradient")),
      definition(definitionOf(declared, this)) {}

}  // namespace stepscope
