// What an op is: its declaration, shape rule, gradient, and what the planner may do with it. One op = one file + one line
// in op_list.h. See README.md of this folder for how to add one.
//
// Ops are written for one internal opset (kInternalOpset); passes/raise_opset brings older nodes up to it. The key is
// (domain, name). Internal ops, which gradients and passes emit where ONNX has no public op, live in domain "stepscope".
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/attributes.h"
#include "kernels/status.h"

namespace stepscope {

inline constexpr int kInternalOpset = 21;
inline constexpr std::string_view kInternalDomain = "stepscope";

class ShapeContext;     // ops/shape_context.h
class GradientContext;  // ops/gradient_context.h

// Reads the inputs of one node and sets shapes and types of its outputs.
using ShapeRule = Status (*)(ShapeContext&);
// Emits the gradient of one node: reads dy(i), calls setGradient(i, value) for the inputs that need one.
using GradientRule = Status (*)(GradientContext&);

enum class Recompute : std::uint8_t {
  kNever,   // random without a key, or a side effect
  kCheap,   // elementwise and movement: worth repeating to save memory
  kCostly,  // matmul, convolution …: allowed, at a price
};

// Which operands may lie in kChannels16 (kernels/layout.h). Operands outside the masks are row-major.
struct LayoutRule {
  std::uint32_t inputs = 0, outputs = 0;
  bool together = false;  // those operands have one layout
  bool elementwise =
      false;           // element i of the output depends on element i of the full-sized operands: any layout that they share
  bool gains = false;  // runs faster on nChw16c: a reason to leave the plain layout
};

// Whether an op draws random numbers; they are keyed by seed, node and step.
enum class Determinism : std::uint8_t { kDeterministic, kRandomKeyed };

// How many operands a node lists, absent ones counted. Those before `least` must be there, later ones may be absent.
struct Arity {
  std::uint32_t least = 0, most = 0;
};
inline constexpr std::uint32_t kMany = 0xffffffffu;

struct OpDef {
  std::string_view name;
  std::string_view domain = "";
  std::string_view doc;             // one line; formula where there is one
  Arity inputs, outputs;            // checked in phase `check` (passes/check_operands.h); outputs may be absent anywhere
  std::uint32_t absentInputs = 0;   // bit i set = input i may be absent although it stands before inputs.least
  ShapeRule inferShape = nullptr;   // required
  GradientRule gradient = nullptr;  // nullptr: not differentiable, or no rule; say why in noGradientReason
  std::string_view noGradientReason = "";  // "integer result", "piecewise constant: zero almost everywhere" …
  // The differentiability table: bit i set = input i can receive a gradient (variadic ops: kAllInputs), and output o can
  // carry one. Inputs outside the mask are stop edges. Float type is checked besides. Bits without a rule say that the slope
  // exists and this build cannot compute it: such a node between a trained value and the loss is refused, never cut in
  // silence.
  std::uint32_t differentiableInputs = 0;
  std::uint32_t differentiableOutputs = 1;
  // Inputs whose buffer output 0 may take over (elementwise kernels that read element i before writing it).
  std::uint32_t inPlaceInputs = 0;
  // Output 0 is the same memory as input 0 seen with other extents (Reshape, Identity …): costs nothing.
  bool view = false;
  bool dataDependentShape = false;  // extents of an output depend on contents (NonZero …)
  bool sequences = false;           // takes or makes sequences/optionals: must be lowered before planning
  Recompute recompute = Recompute::kCheap;
  Determinism determinism = Determinism::kDeterministic;
  // Multiply-adds count as two. nullptr = one flop per output element.
  double (*flops)(const struct OpShapes&) = nullptr;
  LayoutRule layout = {};
};

// Concrete extents for the cost formulas.
struct OpShapes {
  std::span<const std::span<const std::int64_t>> inputs, outputs;
  const Attributes* attrs = nullptr;
};

// The parts of a mask of operands: one operand, those from 31 on, all.
constexpr std::uint32_t bit(int i) { return 1u << i; }
inline constexpr std::uint32_t kVariadicTail = 1u << 31;
inline constexpr std::uint32_t kAllInputs = 0xffffffffu;

// Whether input (or output) i is in the mask; indices from 31 on share the bit of the variadic tail.
constexpr bool maskHas(std::uint32_t mask, std::size_t i) { return (mask >> (i < 31 ? i : 31) & 1u) != 0; }

// The definition, or nullptr. O(1).
const OpDef* findOp(std::string_view domain, std::string_view name);
// All of them, in the order of op_list.h.
std::span<const OpDef* const> allOps();

}  // namespace stepscope
