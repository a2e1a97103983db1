// What an op is: its declaration, shape rule, gradient, and what the planner may do with it. One op = one file + one line
// in op_list.h. See README.md of this folder for how to add one.
//
// Ops are written for one internal opset (kInternalOpset); passes/raise_opset brings older nodes up to it. The key is
// (domain, name, since-version). Internal ops, which gradients and passes emit where ONNX has no public op, live in domain
// "stepscope". Ops are looked up in an OpRegistry (op_registry.h); the lists here are only what one is made from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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

// What kind of work an op is: how views colour it and reports group it.
enum class OpCategory : std::uint8_t {
  kUnset,  // refused by OpRegistry::add
  kOptimizer,
  kLoss,
  kConvolution,
  kMatmul,
  kNormalization,
  kActivation,
  kMovement,
  kReduction,
  kRandom,
  kControl,
  kElementwise,
  kOther,
};
std::string_view categoryName(OpCategory category);  // "optimizer" …; "" for kUnset

// The type that an op is computed in when a model is trained in float16 or bfloat16. The lists are those of PyTorch's
// autocast (torch/amp, "Autocast Op Reference"); a gradient has the class of its op.
enum class Precision : std::uint8_t {
  kUnset,    // refused by OpRegistry::add
  kLow,      // in the low type: products and convolutions, which gain most and accumulate in float32 by themselves
  kF32,      // needs float32: exponentials, logarithms, norms, losses, long sums, updates of parameters
  kFollows,  // whatever its inputs are in: selects, moves, compares or does one rounding per element
  kWide,     // whatever its inputs are in, but what it adds up is kept in float32
};

// What a node does besides computing its outputs. Nodes that do something are not merged with their like (cse) and not
// recomputed.
enum class SideEffect : std::uint8_t {
  kNone,
  kCollective,  // talks to other processes, which wait for it
  kOutput,      // writes something that people read: a print, a file
};

// What of its operands an op touches, where that is not all of them. For the bytes of a plan.
struct Traffic {
  std::uint32_t picked = 0;  // inputs of which it reads as much as output 0 has (Gather, Slice …)
  // Output 0 is input `base`, changed in as many elements as input `updates` has (ScatterND …), once it takes over the
  // memory of the base. -1: no such inputs.
  std::int8_t base = -1, updates = -1;
  bool moves = false;  // copies elements or makes indices: no arithmetic to count
};

// Which inputs of an update are gradients: input `first`, and from there on every `stride`-th (0 = no other).
struct GradientInputs {
  int first = -1;  // -1 = none
  int stride = 0;
  constexpr bool has(std::size_t i) const {
    const int at = static_cast<int>(i) - first;
    return first >= 0 && at >= 0 && (stride > 0 ? at % stride == 0 : at == 0);
  }
};

// What a layout of sixteen channels asks of the axes of an op whose operands may have it.
enum class ChannelRule : std::uint8_t {
  kAny,          // nothing: the channels stay whatever it does
  kParts,        // Concat, Split: every part has a multiple of sixteen channels
  kSampled,      // Resize: batch and channels are not resized
  kFromVector,   // Expand: the input has one element per channel
  kReducedAway,  // ReduceSum, ReduceMean: the channels or all axes behind them are reduced
  kSummedBack,   // ReduceToShape: what was broadcast had one element per channel, or no channels
};

// Which operands may lie in kChannels16 (kernels/layout.h). Operands outside the masks are row-major.
struct LayoutRule {
  std::uint32_t inputs = 0, outputs = 0;
  bool together = false;  // those operands have one layout
  // Element i of the output depends on element i of the full-sized operands: any layout that they share.
  bool elementwise = false;
  bool vectors = false;  // elementwise, and float32 operands of one element per channel may stand beside nChw16c
  bool gains = false;    // runs faster on nChw16c: a reason to leave the plain layout
  ChannelRule channels = ChannelRule::kAny;
};

// How many operands a node lists, absent ones counted. Those before `least` must be there, later ones may be absent.
struct Arity {
  std::uint32_t least = 0, most = 0;
};
inline constexpr std::uint32_t kMany = 0xffffffffu;

struct OpDef {
  std::string_view name;
  std::string_view domain = "";
  // The version of the domain from which on this definition holds. What ONNX added after the internal opset has that one's
  // number, because raise_opset writes such nodes at the internal opset.
  int sinceVersion = 1;
  std::string_view doc;            // one line; formula where there is one
  Arity inputs, outputs;           // checked in phase `check` (passes/check_operands.h); outputs may be absent anywhere
  std::uint32_t absentInputs = 0;  // bit i set = input i may be absent although it stands before inputs.least
  OpCategory category = OpCategory::kUnset;  // required
  Precision precision = Precision::kUnset;   // required
  // Inputs whose contents host code reads before or while the op is launched: shapes, axes, pads, counts, conditions. On
  // another device the plan copies them to the host first. Required; kNoInputs when there are none.
  std::optional<std::uint32_t> hostInputs;
  ShapeRule inferShape = nullptr;          // required
  GradientRule gradient = nullptr;         // nullptr: not differentiable, or no rule; say why in noGradientReason
  std::string_view noGradientReason = "";  // "integer result", "piecewise constant: zero almost everywhere" …
  // The differentiability table: bit i set = input i can receive a gradient (variadic ops: kAllInputs), and output o can
  // carry one. Inputs outside the mask are stop edges. Float type is checked besides. Bits without a rule say that the slope
  // exists and this build cannot compute it: such a node between a trained value and the loss is refused, never cut in
  // silence.
  std::uint32_t differentiableInputs = 0;
  std::uint32_t differentiableOutputs = 1;
  // Inputs whose buffer output 0 may take over (elementwise kernels that read element i before writing it).
  std::uint32_t inPlaceInputs = 0;
  // Element i of its one output follows from the elements of the inputs at the same place alone, inputs being broadcast:
  // rows of the result are the result of rows. Passes that leave out tokens or places go through such ops.
  bool pointwise = false;
  // Output 0 is the same memory as input 0 seen with other extents (Reshape, Identity …): costs nothing.
  bool view = false;
  bool dataDependentShape = false;  // extents of an output depend on contents (NonZero …)
  bool sequences = false;           // takes or makes sequences/optionals: must be lowered before planning
  Recompute recompute = Recompute::kCheap;
  bool random = false;  // draws numbers with the key of the call: not a constant, not to be merged with its like
  SideEffect sideEffect = SideEffect::kNone;  // others than kNone need Recompute::kNever
  // Multiply-adds count as two. nullptr = one flop per output element.
  double (*flops)(const struct OpShapes&) = nullptr;
  LayoutRule layout = {};
  Traffic traffic = {};
  GradientInputs gradients = {};  // of optimizer updates and accumulators
  void* user = nullptr;           // for the rules of ops that a shared library adds: op().user of their context
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
inline constexpr std::uint32_t kNoInputs = 0;

// Whether input (or output) i is in the mask; indices from 31 on share the bit of the variadic tail.
constexpr bool maskHas(std::uint32_t mask, std::size_t i) { return (mask >> (i < 31 ? i : 31) & 1u) != 0; }

// The built-in ops, in the order of op_list.h.
std::span<const OpDef* const> allOps();

}  // namespace stepscope
