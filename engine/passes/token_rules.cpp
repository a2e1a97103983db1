// What the results of a node hold where tokens are padded, by what its operands hold there (token_flow.h).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/passes/token_axes.h"
#include "engine/passes/token_flow.h"

namespace stepscope {
namespace {

constexpr double kLowEnough = -1e4;  // what masks subtract at least; exp of it is 0 in every type

}  // namespace

TokenFlow::Held TokenFlow::selected(const Node& node, const std::vector<Held>& held) const {
  const auto depends = [](Held h) { return h != Held::kNothing && h != Held::kMask; };
  if (!depends(held[0]) && !depends(held[1]) && !depends(held[2]))
    return held[0] == Held::kMask || held[1] == Held::kMask || held[2] == Held::kMask ? Held::kMask : Held::kNothing;
  const auto number = [&](std::size_t i) -> std::optional<double> {
    const Tensor* tensor = inference_.constant(node.input(i));
    return tensor && tensor->elements() == 1 ? std::optional(elementAsDouble(tensor->view(), 0)) : std::nullopt;
  };
  // What stands in the place of the number that depends on padding, and what that is.
  for (const std::size_t side : {1u, 2u}) {
    if (depends(held[side]) || !depends(held[3 - side])) continue;
    const auto other = number(side);
    const bool zero = other && *other == 0, low = other && *other <= kLowEnough;
    if (held[0] == Held::kMask) return zero ? Held::kZero : low ? Held::kLow : Held::kAnything;
    if (zero && held[3 - side] == Held::kZero) return Held::kZero;
    if (low && held[3 - side] == Held::kLow && !depends(held[0])) return Held::kLow;
    return Held::kAnything;
  }
  return held[1] == held[2] && !depends(held[0]) ? held[1] : Held::kAnything;
}

// What the result holds at an axis where the operands hold `held`.
TokenFlow::Held TokenFlow::combined(const Node& node, const std::vector<Held>& held) const {
  const auto count = [&](Held h) { return std::ranges::count(held, h); };
  const auto masks = count(Held::kMask), nothing = count(Held::kNothing);
  if (masks + nothing == std::ssize(held)) return masks > 0 ? Held::kMask : Held::kNothing;
  if (node.op == "Where") return selected(node, held);
  const bool hands =
      node.op == "Cast" || node.op == "Identity" || node.op == "Dropout" || node.op == "DropoutPart" || node.op == "Expand";
  if (hands) return held[0];
  if (node.op == "Add" || node.op == "Sum") return masks + count(Held::kLow) > 0 ? Held::kLow : Held::kAnything;
  if (node.op == "Mul") return masks + count(Held::kZero) > 0 ? Held::kZero : Held::kAnything;
  if (node.op == "Div" && held[0] == Held::kZero && held[1] == Held::kNothing) return Held::kZero;
  return Held::kAnything;
}

void TokenFlow::pointwise(const Node& node) {
  const ValueId y = node.output(0);
  const Shape* shape = shapeOf(y);
  if (!shape) {
    if (std::ranges::any_of(node.inputs, [this](ValueId in) { return dependsOnPadding(in); }))
      refuse(node.id, fmt::format("the rank of '{}' is not known", graph_.value(y).name));
    return;
  }
  if (isOp(node, "Dropout") && node.output(1) && !readers_.of(node.output(1)).empty())
    return refuse(node.id, "the mask of Dropout is read");
  const std::size_t operands = inference_.ops().isPointwise(node) ? node.inputs.size() : 1;
  State state{std::vector<Held>(shape->size(), Held::kNothing)};
  for (std::size_t i = 0; i < operands; ++i) {
    const State* own = stateOf(node.input(i));
    state.flat = state.flat || (own && own->flat && dependsOnPadding(node.input(i)));
  }
  for (std::size_t axis = 0; axis < shape->size(); ++axis) {
    std::vector<Held> held;
    for (std::size_t i = 0; i < operands; ++i) {
      const Shape* own = shapeOf(node.input(i));
      const std::size_t missing = own ? shape->size() - std::min(shape->size(), own->size()) : 0;
      held.push_back(own && axis >= missing ? heldAt(node.input(i), axis - missing) : Held::kNothing);
    }
    state.held[axis] = combined(node, held);
  }
  setState(y, std::move(state));
}

void TokenFlow::reshaped(const Node& node) {
  const ValueId x = node.input(0), y = node.output(0);
  const Shape *from = shapeOf(x), *to = shapeOf(y);
  const bool depends = dependsOnPadding(x);
  const auto lost = [&] {
    if (depends) refuse(node.id, fmt::format("{} mixes the positions of tokens with other axes", node.label()));
  };
  if (!from || !to) return lost();
  const State& state = *stateOf(x);
  State result{std::vector<Held>(to->size(), Held::kNothing)};
  for (std::size_t axis = 0; axis < from->size(); ++axis) {
    if (state.held[axis] == Held::kNothing) continue;
    const Dim behind = productOf(*from, axis + 1, from->size());
    std::optional<std::size_t> at;
    for (std::size_t t = 0; t < to->size() && !at; ++t)
      if ((*to)[t] == (*from)[axis] && productOf(*to, t + 1, to->size()) == behind) at = t;
    if (at) {
      result.flat = state.flat;
    } else if (!state.flat && axis == 1 && shaped(x) == TokenForm::kGrid && shaped(y) == TokenForm::kFlat &&
               productOf(*to, 1, to->size()) == behind) {
      at = 0;
      result.flat = true;
    } else if (state.flat && shaped(y) == TokenForm::kGrid && productOf(*to, 2, to->size()) == behind) {
      at = 1;
    } else {
      return lost();
    }
    result.held[*at] = state.held[axis];
  }
  setState(y, std::move(result));
}

void TokenFlow::transposed(const Node& node) {
  const State& state = *stateOf(node.input(0));
  const std::size_t rank = state.held.size();
  const auto perm = node.attrs.integers("perm");
  if (!perm.empty() && perm.size() != rank) return;
  State result{std::vector<Held>(rank, Held::kNothing)};
  for (std::size_t axis = 0; axis < rank; ++axis)
    result.held[axis] = state.held[perm.empty() ? rank - 1 - axis : static_cast<std::size_t>(perm[axis])];
  setState(node.output(0), std::move(result));
}

void TokenFlow::multiplied(const Node& node) {
  const Shape *a = shapeOf(node.input(0)), *b = shapeOf(node.input(1)), *y = shapeOf(node.output(0));
  if (!a || !b || !y || a->size() < 2 || b->size() < 2)
    return refuse(node.id, fmt::format("{}: operands of unknown rank, or vectors", node.label()));
  const Held left = heldAt(node.input(0), a->size() - 1), right = heldAt(node.input(1), b->size() - 2);
  const auto depends = [](Held h) { return h != Held::kNothing && h != Held::kMask; };
  if ((depends(left) || depends(right)) && left != Held::kZero && right != Held::kZero)
    return refuse(node.id, fmt::format("{} sums over padded tokens", node.label()));
  State state{std::vector<Held>(y->size(), Held::kNothing)};
  const auto merge = [&](ValueId x, std::size_t axis, std::size_t to) {
    if (depends(heldAt(x, axis))) state.held[to] = Held::kAnything;
  };
  for (std::size_t axis = 0; axis + 1 < a->size(); ++axis) merge(node.input(0), axis, y->size() - a->size() + axis);
  for (std::size_t axis = 0; axis < b->size(); ++axis)
    if (axis + 2 != b->size()) merge(node.input(1), axis, y->size() - b->size() + axis);
  setState(node.output(0), std::move(state));
}

void TokenFlow::normalised(const Node& node) {
  const State& state = *stateOf(node.input(0));
  const auto axis = axisOf(node.attrs.integer("axis", -1), state.held.size());
  if (!axis) return;
  State result{std::vector<Held>(state.held.size(), Held::kNothing)};
  for (std::size_t i = 0; i < state.held.size(); ++i)
    if (state.held[i] != Held::kNothing && state.held[i] != Held::kMask) result.held[i] = Held::kAnything;
  if (result.held[*axis] != Held::kNothing) {
    if (state.held[*axis] != Held::kLow) return refuse(node.id, fmt::format("{} does not mask padded tokens", node.label()));
    result.held[*axis] = Held::kZero;
  }
  setState(node.output(0), std::move(result));
}

void TokenFlow::reduced(const Node& node) {
  const State& state = *stateOf(node.input(0));
  const std::size_t rank = state.held.size();
  const auto axes = node.input(1) ? inference_.integers(node.input(1)) : std::nullopt;
  if (!axes) return refuse(node.id, fmt::format("{}: its axes are not known", node.label()));
  std::vector<bool> gone(rank, false);
  for (const std::int64_t axis : *axes)
    if (const auto known = axisOf(axis, rank)) gone[*known] = true;
  const bool keep = node.attrs.integer("keepdims", 1) != 0;
  State result;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const Held held = state.held[axis];
    if (!gone[axis]) {
      result.held.push_back(held == Held::kNothing || held == Held::kMask ? Held::kNothing : Held::kAnything);
      continue;
    }
    if (held != Held::kNothing && held != Held::kMask && held != Held::kZero)
      return refuse(node.id, fmt::format("{} sums over padded tokens", node.label()));
    if (keep) result.held.push_back(Held::kNothing);
  }
  setState(node.output(0), std::move(result));
}

// Slice and Split: along other axes they change nothing; the first position of a Slice is kept.
void TokenFlow::cut(const Node& node) {
  const ValueId x = node.input(0);
  const State& state = *stateOf(x);
  const std::size_t rank = state.held.size();
  std::vector<bool> along(rank, false);
  const auto mark = [&](std::int64_t axis) {
    if (const auto known = axisOf(axis, rank)) along[*known] = true;
  };
  const bool slice = isOp(node, "Slice");
  if (slice) {
    const auto axes = node.input(3) ? inference_.integers(node.input(3)) : std::nullopt;
    if (axes)
      std::ranges::for_each(*axes, mark);
    else
      along.assign(rank, true);
  } else {
    mark(node.attrs.integer("axis", 0));
  }
  State result = state;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (!along[axis] || state.held[axis] == Held::kNothing) continue;
    const Shape *from = shapeOf(x), *to = shapeOf(node.output(0));
    const auto steps = slice && node.input(4) ? inference_.integers(node.input(4)) : std::vector<std::int64_t>{1};
    if (slice && from && to && (*from)[axis] == (*to)[axis] && steps &&
        std::ranges::all_of(*steps, [](std::int64_t s) { return s == 1; }))
      continue;  // all of it
    const auto begin = slice ? inference_.integers(node.input(1)) : std::nullopt;
    if (begin && begin->size() == 1 && begin->front() == 0 && to && (*to)[axis] == Dim(1) && !state.flat) {
      result.held[axis] = Held::kNothing;
      continue;
    }
    if (state.held[axis] != Held::kMask)
      return refuse(node.id, fmt::format("{} takes the tokens apart by their positions", node.label()));
    result.held[axis] = Held::kNothing;
  }
  for (const ValueId out : node.outputs) setState(out, result);
}

void TokenFlow::picked(const Node& node) {
  const ValueId x = node.input(0), indices = node.input(1);
  const Shape* places = shapeOf(indices);
  if (dependsOnPadding(indices) || !places || places->size() > 1 || !stateOf(x))
    return refuse(node.id, fmt::format("{} reads padded tokens", node.label()));
  const State& state = *stateOf(x);
  const auto axis = axisOf(node.attrs.integer("axis", 0), state.held.size());
  if (!axis) return;
  State result = state;
  if (state.held[*axis] != Held::kNothing) {
    // Rows of labels that count, chosen by pass sparse_labels, are kept; so is the first token of every row.
    const bool counted = state.flat && graph_.value(indices).role == ValueRole::kInput &&
                         std::ranges::any_of(input_.labels, [&](const std::string& labels) {
                           return graph_.value(indices).name == labels + ".kept_rows";
                         });
    const auto place = inference_.integers(indices);
    const bool first = !state.flat && place && std::ranges::all_of(*place, [](auto p) { return p == 0; });
    if (!counted && !first) return refuse(node.id, fmt::format("{} picks tokens by their positions", node.label()));
    result.held[*axis] = Held::kNothing;
    result.flat = false;
  }
  if (places->empty()) result.held.erase(result.held.begin() + static_cast<std::ptrdiff_t>(*axis));
  setState(node.output(0), std::move(result));
}

void TokenFlow::joined(const Node& node) {
  const Shape* shape = shapeOf(node.output(0));
  const auto axis = shape ? axisOf(node.attrs.integer("axis", 0), shape->size()) : std::nullopt;
  if (!axis) return refuse(node.id, fmt::format("{}: operands of unknown rank", node.label()));
  State state{std::vector<Held>(shape->size(), Held::kNothing)};
  for (const ValueId in : node.inputs)
    for (std::size_t at = 0; at < shape->size(); ++at) {
      const Held held = heldAt(in, at);
      if (held == Held::kNothing || held == Held::kMask) continue;
      if (at == *axis) return refuse(node.id, fmt::format("{} joins tokens along their positions", node.label()));
      state.held[at] = Held::kAnything;
    }
  setState(node.output(0), std::move(state));
}

}  // namespace stepscope
