// Keys: what a person points at, by names that survive a rebuild. Ids (NodeId, ValueId) belong to one plan; DESIGN §10.
//
// A key says what is computed, not which node does it here: the imported node or value, and its role in the step. Which node
// or value of a plan that is, and what became of it where there is none, answers KeyIndex (key_index.h). Where a paused step
// stands in another plan answers place_key.h.
//
// As text a key is a name, followed by words that begin with a space. Names are written as they are, but for spaces (\s),
// backslashes (\\), and control characters, bytes that are no UTF-8 and a leading '=' (\xHH). parse(text()) gives the key
// back, and parse takes nothing that text() does not write.
//
//   node    h.0/mlp/MatMul                 the imported node
//           =loss/Sub, =clip/total         a node that a phase adds for the whole step: loss, clipping, later collectives
//           h.0/mlp/MatMul ∂1              first node of the gradient of its input 1; "∂1.2" the third
//           h.0/mlp/Mul as:Gelu ∂0         the same, where a pass had made Gelu of the imported node before the gradient
//           h.0/x grad                     makes d loss / d value h.0/x, whichever node that is; "grad:cse" where cse had
//                                          merged another value into it
//           h.0/mlp/Gelu again             its copy that recompute runs
//           w update, w update:accumulate  the optimizer's update of parameter w, and what belongs to it
//           h.0/Slice by:hoist_slices.0    first node that this pass set beside it; in plans with that pass alone
//   value   h.0/x, w, w.exp_avg            an imported value, an input or a state, by name
//           h.0/x grad                     d loss / d value; "grad:cse" where cse had merged another value into it
//           w next                         what state w becomes when the step is committed
//           h.0/x again                    what the recomputed copy makes
//           h.0/mlp/MatMul ∂1.2 :0         output 0 of any other node
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/ir/interned_text.h"
#include "kernels/status.h"

namespace stepscope {

struct ValueKey;

enum class NodeRole : std::uint8_t {
  kNone,           // no key: of an invalid id
  kForward,        // subject: name of the imported node
  kRoot,           // subject: name that the phase gave it; ordinal counts equal ones
  kGradient,       // subject: text of the forward node's key; detail: its op where a pass had changed it; input, ordinal
  kValueGradient,  // subject: text of the value's key; detail: the pass that had merged another value into it
  kRecomputed,     // subject: text of the key of the node that it repeats
  kUpdate,         // subject: name of the parameter; detail: empty, or "accumulate" …
  kPass,           // subject: text of the key of the node beside which it was set; detail: the pass; ordinal counts
};

// A node of the step by what it computes. 16 bytes, copied like an int. Ordered by texts, the same way in every process.
struct NodeKey {
  InternedText subject, detail;
  std::int32_t ordinal = 0;
  std::int16_t input = 0;
  NodeRole role = NodeRole::kNone;

  static NodeKey forward(std::string_view nodeName);
  static NodeKey root(std::string_view name, int ordinal = 0);
  static NodeKey gradient(const NodeKey& forward, int input, int ordinal, std::string_view as = {});
  static NodeKey valueGradient(const ValueKey& value, std::string_view merged = {});
  static NodeKey recomputed(const NodeKey& original);
  static NodeKey update(std::string_view parameter, std::string_view part = {});
  static NodeKey madeByPass(const NodeKey& beside, std::string_view pass, int ordinal);

  bool valid() const { return role != NodeRole::kNone; }
  explicit operator bool() const { return valid(); }
  std::string text() const;  // "" when invalid
  // Error: invalid_argument with the text, what is wrong with it and what is expected.
  static Result<NodeKey> parse(std::string_view text);

  friend bool operator==(const NodeKey&, const NodeKey&) = default;
  friend std::strong_ordering operator<=>(const NodeKey&, const NodeKey&) = default;
};

enum class ValueKeyKind : std::uint8_t {
  kNone,        // no key: of an invalid id, or of a constant that the build made
  kNamed,       // subject: name of an imported value, an input or a state
  kGradient,    // subject: text of the value's key; detail: the pass that had merged another value into it
  kNext,        // subject: text of the state's key
  kRecomputed,  // subject: text of the key of the value that it repeats
  kOutput,      // subject: text of the node's key; output
};

// A value of the step by what it is. 16 bytes, copied like an int. Ordered by texts, the same way in every process.
struct ValueKey {
  InternedText subject, detail;
  std::int32_t output = 0;
  ValueKeyKind kind = ValueKeyKind::kNone;

  static ValueKey named(std::string_view name);
  static ValueKey gradient(const ValueKey& value, std::string_view merged = {});
  static ValueKey next(const ValueKey& state);
  static ValueKey recomputed(const ValueKey& original);
  static ValueKey of(const NodeKey& node, int output);

  bool valid() const { return kind != ValueKeyKind::kNone; }
  explicit operator bool() const { return valid(); }
  std::string text() const;  // "" when invalid
  // Error: invalid_argument with the text, what is wrong with it and what is expected.
  static Result<ValueKey> parse(std::string_view text);

  friend bool operator==(const ValueKey&, const ValueKey&) = default;
  friend std::strong_ordering operator<=>(const ValueKey&, const ValueKey&) = default;
};

}  // namespace stepscope

template <>
struct std::hash<stepscope::NodeKey> {
  std::size_t operator()(const stepscope::NodeKey& key) const noexcept {
    std::size_t h = key.subject.index();
    for (const std::size_t part : {std::size_t{key.detail.index()}, static_cast<std::size_t>(key.ordinal),
                                   static_cast<std::size_t>(key.input) * 16 + static_cast<std::size_t>(key.role)})
      h = h * 0x9e3779b97f4a7c15u + part;
    return h ^ (h >> 29);
  }
};

template <>
struct std::hash<stepscope::ValueKey> {
  std::size_t operator()(const stepscope::ValueKey& key) const noexcept {
    std::size_t h = key.subject.index();
    for (const std::size_t part :
         {std::size_t{key.detail.index()}, static_cast<std::size_t>(key.output) * 16 + static_cast<std::size_t>(key.kind)})
      h = h * 0x9e3779b97f4a7c15u + part;
    return h ^ (h >> 29);
  }
};
