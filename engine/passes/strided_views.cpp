#include "engine/passes/strided_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_set>

#include "engine/ops/op_def.h"
#include "engine/passes/pointwise_steps.h"
#include "engine/passes/product_node.h"
#include "engine/passes/rewrite_walk.h"
#include "kernels/attention_shape.h"
#include "kernels/layout.h"
#include "kernels/strided_view.h"

namespace stepscope {
namespace {

struct Leaf {
  NodeId node;
  std::size_t input = 0;
  StridedView view;
};

// What follows from not making the results of one node.
struct Walk {
  std::vector<Leaf> leaves;
  std::vector<NodeId> moved;  // nodes that are not needed any more
  bool near = false;          // whether a node that sees strides reads any of it
  std::string refusal;        // the first one

  void refuse(std::string why) {
    if (refusal.empty()) refusal = std::move(why);
  }
};

bool isAttention(const Node& node) {
  return node.domain == kInternalDomain && (node.op == "FusedAttention" || node.op == "FusedAttentionGrad");
}
bool isJoin(const Node& node) { return isOp(node, "Concat") || (node.domain == kInternalDomain && node.op == "Join"); }
bool isChain(const Node& node) {
  return node.domain == kInternalDomain && (node.op == "Pointwise" || node.op == "PointwiseSum");
}
bool moves(const Node& node) { return isOp(node, "Slice") || isOp(node, "Split") || isOp(node, "Transpose"); }

// Below this a kernel spends more on finding the elements than a copy costs (tests/bench/RESULTS.md).
constexpr std::int64_t kLeastNeighbours = 8;
constexpr std::size_t kMostViewAxes = 8;  // of kernels on a GPU

// How many elements of a view follow one another in memory along its last axes.
std::int64_t neighboursOf(const StridedView& view) {
  std::int64_t run = 1;
  for (std::size_t i = view.dims.size(); i-- > 0;) {
    if (view.dims[i] == 1) continue;
    if (view.strides[i] != run) break;
    run *= view.dims[i];
  }
  return run;
}

class Viewer : RewriteWalk {
 public:
  Viewer(Graph& graph, PassContext& context) : RewriteWalk(graph, context) {
    convolves_ = std::ranges::any_of(graph.order(), [&](NodeId id) {
      const OpDef* op = context.inference.ops().find(graph.node(id));
      return op && op->layout.gains;
    });
  }

  Status run() {
    for (const NodeId id : std::vector<NodeId>(graph_.order())) {
      const Node& node = graph_.node(id);
      if (!moves(node) || node.phase == Phase::kOptimizer || gone_.contains(id)) continue;
      const auto dims = dimsOf(node.input(0));
      if (!dims || elementCount(*dims) == 0) continue;
      Walk walk;
      passThrough(node, StridedView::whole(*dims), walk);
      if (!walk.near && walk.refusal.empty()) continue;
      if (walk.refusal.empty()) walk.refusal = memoryRefusal(node, walk);
      if (!walk.refusal.empty()) {
        context_.miss(id, walk.refusal);
        continue;
      }
      for (const Leaf& leaf : walk.leaves) write(leaf, node.input(0));
      gone_.insert(walk.moved.begin(), walk.moved.end());
      context_.match();
    }
    if (!gone_.empty()) graph_.removeDeadNodes();
    return {};
  }

 private:
  std::optional<Dims> dimsOf(ValueId id) const {
    const auto& shape = graph_.value(id).type.shape;
    return shape ? knownDims(*shape) : std::nullopt;
  }
  std::string_view nameOf(ValueId id) const { return graph_.value(id).name; }

  // What the results of a Slice, Split or Transpose are of what `of` is a view of; empty where that is not known.
  std::vector<StridedView> viewsOf(const Node& node, const StridedView& of) const {
    std::vector<Dims> results;
    for (const ValueId out : node.outputs) {
      const auto dims = out ? dimsOf(out) : std::nullopt;
      if (!dims) return {};
      results.push_back(*dims);
    }
    const auto rank = static_cast<std::int64_t>(of.dims.size());
    if (node.op == "Transpose") {
      Dims perm = node.attrs.integers("perm");
      if (perm.empty()) {
        perm = identityPerm(of.dims.size());
        std::reverse(perm.begin(), perm.end());
      }
      return {of.transposed(perm)};
    }
    if (node.op == "Split") {
      const auto axis = normalizeAxis(node.attrs.integer("axis", 0), rank);
      if (!axis) return {};
      const auto at = static_cast<std::size_t>(*axis);
      std::vector<StridedView> views;
      std::int64_t begin = 0;
      for (const Dims& dims : results) {
        views.push_back(of.sliced(at, begin, dims[at]));
        begin += dims[at];
      }
      return begin == of.dims[at] ? views : std::vector<StridedView>{};
    }
    const auto numbers = [&](std::size_t input) {
      return node.input(input) ? context_.inference.integers(node.input(input)) : std::nullopt;
    };
    const auto starts = numbers(1);
    auto axes = numbers(3), steps = numbers(4);
    if (!starts || (node.input(3) && !axes) || (node.input(4) && !steps)) return {};
    if (!axes) axes = identityPerm(starts->size());
    if (!steps) steps = std::vector<std::int64_t>(starts->size(), 1);
    StridedView view = of;
    for (std::size_t i = 0; i < starts->size() && i < axes->size() && i < steps->size(); ++i) {
      const auto axis = normalizeAxis((*axes)[i], rank);
      if (!axis || (*steps)[i] < 1) return {};
      const auto at = static_cast<std::size_t>(*axis);
      const std::int64_t all = of.dims[at], start = (*starts)[i];
      view = view.sliced(at, std::clamp<std::int64_t>(start < 0 ? start + all : start, 0, all), results[0][at], (*steps)[i]);
    }
    return view.dims == results[0] ? std::vector<StridedView>{view} : std::vector<StridedView>{};
  }

  // `node` is a Slice, Split or Transpose of what `of` sees.
  void passThrough(const Node& node, const StridedView& of, Walk& walk) const {
    walk.moved.push_back(node.id);
    const std::vector<StridedView> views = viewsOf(node, of);
    if (views.size() != node.outputs.size()) {
      walk.refuse(fmt::format("what {} takes is not known, or goes backwards", node.label()));
      for (const ValueId out : node.outputs)
        for (const Use& use : readers_.of(out)) walk.near |= use.input != SIZE_MAX && sees(graph_.node(use.node), use.input);
      return;
    }
    for (std::size_t o = 0; o < views.size(); ++o) follow(node, node.outputs[o], views[o], walk);
  }

  // All readers of a value that would be a view.
  void follow(const Node& maker, ValueId value, const StridedView& view, Walk& walk) const {
    if (readers_.isKept(value)) walk.refuse(fmt::format("'{}' is kept", nameOf(value)));
    for (const Use& use : readers_.of(value)) {
      const Node& reader = graph_.node(use.node);
      const OpDef* op = context_.inference.ops().find(reader);
      if (use.input == SIZE_MAX || !op)
        walk.refuse(fmt::format("'{}' is a condition", nameOf(value)));
      else if (reader.predicates != maker.predicates)
        walk.refuse(fmt::format("{} belongs to another branch of If", reader.label()));
      else if (op->view && use.input == 0 && reader.domain.empty())
        followView(reader, view, walk);
      else if (moves(reader) && use.input == 0)
        passThrough(reader, view, walk);
      else
        addLeaf(reader, use.input, view, walk);
    }
  }

  void followView(const Node& node, const StridedView& view, Walk& walk) const {
    const auto dims = dimsOf(node.output(0));
    const auto seen = dims ? view.reshaped(*dims) : std::nullopt;
    walk.moved.push_back(node.id);
    if (seen)
      follow(node, node.output(0), *seen, walk);
    else
      walk.refuse(fmt::format("{} needs elements that lie side by side", node.label()));
  }

  // Whether the op takes a view of that input.
  bool sees(const Node& reader, std::size_t input) const {
    if (isAttention(reader) || isChain(reader)) return !viewAttributeOf(reader.domain, reader.op, input).empty();
    if (isJoin(reader))
      return reader.phase != Phase::kOptimizer && reader.inputs.size() <= kMostPointwiseInputs &&
             std::ranges::all_of(reader.inputs, [&](ValueId in) { return in && dimsOf(in); });
    return (input < 2 && readProduct(graph_, reader).has_value()) || loneSteps(reader);
  }

  // Of an elementwise node by itself that can become a chain; nothing for others.
  std::optional<NodeSteps> loneSteps(const Node& node) const {
    if (node.phase == Phase::kOptimizer || node.outputs.size() != 1 || !dimsOf(node.output(0))) return std::nullopt;
    if (!std::ranges::all_of(node.inputs, [&](ValueId in) { return in && dimsOf(in); })) return std::nullopt;
    auto steps = stepsOf(graph_, node);
    if (!steps || steps->steps.empty() || graph_.value(node.output(0)).type.dtype == DType::kBool) return std::nullopt;
    return node.inputs.size() + steps->constants.size() > kMostPointwiseInputs ? std::nullopt : steps;
  }

  void addLeaf(const Node& reader, std::size_t input, const StridedView& view, Walk& walk) const {
    if (!sees(reader, input)) {
      const ValueId part = reader.inputs[input];
      const auto dims = dimsOf(part);
      const std::size_t bytes =
          (dims ? static_cast<std::size_t>(elementCount(*dims)) : 0) * dtypeSize(graph_.value(part).type.dtype);
      walk.refuse(
          fmt::format("{} reads '{}' and sees no strides: {} bytes are copied", reader.label(), nameOf(part), bytes));
      return;
    }
    walk.near = true;
    std::string why;
    if (isAttention(reader))
      why = attentionRefusal(reader, input, view);
    else if (const auto product = input < 2 ? readProduct(graph_, reader) : std::nullopt)
      why = productRefusal(reader, *product, input, view);
    else
      why = isJoin(reader) ? joinRefusal(reader, input, view) : chainRefusal(reader, input, view);
    if (!why.empty()) walk.refuse(fmt::format("{}: {}", reader.label(), why));
    walk.leaves.push_back({reader.id, input, view});
  }

  std::string productRefusal(const Node& node, const ProductNode& before, std::size_t input, const StridedView& view) const {
    const ValueId operand = node.input(input);
    if (graph_.value(operand).type.dtype == DType::kF16 && context_.target.device == "cpu")
      return "operands in float16 are converted whole";
    if (!(input == 0 ? before.viewA : before.viewB).empty()) return "it sees a part of its operand already";
    ProductForm form;
    form.permA = before.permA, form.permB = before.permB, form.permY = before.permY;
    const auto whole = shapeOfProduct(graph_, before);
    const auto other = seenBy(node.input(1 - input), input == 0 ? before.viewB : before.viewA);
    if (!whole || !other) return "its extents are not known";
    auto part = input == 0 ? matMulShape(view, *other, form) : matMulShape(*other, view, form);
    if (!part) return part.error().message;
    mergeBatches(*part);
    const MatMulShape &a = *whole, &b = *part;
    if (a.batches() != b.batches()) return fmt::format("{} products of few rows instead of {}", b.batches(), a.batches());
    const auto side = [](std::int64_t row, std::int64_t column) { return column == 1 ? 0 : row == 1 ? 1 : 2; };
    if (side(a.aRow, a.aColumn) != side(b.aRow, b.aColumn) || side(a.bRow, a.bColumn) != side(b.bRow, b.bColumn))
      return "rows or columns would have no neighbouring elements, or others";
    return context_.target.device == "cpu" ? otherRoutine(a, b) : std::string();
  }

  // The CPU's library picks its routine by the strides, and the bits follow (kernels/cpu/linear/matmul.h). Empty where it
  // stays: sgemm and the matmul primitive take batches of rows or columns wherever they lie.
  static std::string otherRoutine(const MatMulShape& whole, const MatMulShape& part) {
    const auto strides = [](const MatMulShape& s) {
      return std::tuple(s.aStrides, s.bStrides, s.aRow, s.aColumn, s.bRow, s.bColumn);
    };
    if (part.batches() > 1 || strides(whole) == strides(part)) return {};
    return "rows of its one matrix would lie apart, and another routine would compute it";
  }

  std::optional<StridedView> seenBy(ValueId id, const Dims& numbers) const {
    const auto dims = dimsOf(id);
    if (!dims || numbers.empty()) return dims ? std::optional(StridedView::whole(*dims)) : std::nullopt;
    Attributes attrs;
    attrs.set("view", numbers);
    auto view = StridedView::of(*dims, attrs, "view");
    return view ? std::optional(std::move(*view)) : std::nullopt;
  }

  std::string attentionRefusal(const Node& node, std::size_t input, const StridedView& view) const {
    const DType dtype = graph_.value(node.input(input)).type.dtype;
    if (dtype != DType::kF32 && dtype != DType::kF64) return "operands in other types than float32 are converted whole";
    const std::string_view name = viewAttributeOf(node.domain, node.op, input);
    if (node.attrs.has(name)) return "it sees a part of its operand already";
    const bool q = name == "viewQ";
    const Dims perm = node.attrs.integers(q ? "permQ" : name == "viewK" ? "permK" : "permV");
    const StridedView seen = view.transposed(perm);
    const std::size_t rank = seen.dims.size();
    if (rank < 2) return "its extents are not known";
    const std::int64_t row = seen.strides[rank - 2], column = seen.strides[rank - 1];
    if (!(column == 1 && row >= seen.dims[rank - 1]) && !(row == 1 && column >= seen.dims[rank - 2]))
      return "rows would have no neighbouring elements";
    return {};
  }

  // Of whatever moves or computes elements one by one.
  std::string joinRefusal(const Node& node, std::size_t input, const StridedView& view) const {
    const DType dtype = graph_.value(node.input(input)).type.dtype;
    if (seesView(node.domain, node.op, input, node.attrs)) return "it sees a part of its operand already";
    if (dtype == DType::kString) return "text is not moved by memory copies";
    if (convolves_ && layoutRefusal(dtype, view.dims).empty())
      return "beside convolutions its operands may lie in another layout";
    if (elementCount(view.dims) == 0) return "it has no elements";
    return view.dims.size() > kMostViewAxes ? fmt::format("{} axes", view.dims.size()) : std::string();
  }

  std::string chainRefusal(const Node& node, std::size_t input, const StridedView& view) const {
    const auto plain = [&](ValueId id) {
      const DType dtype = graph_.value(id).type.dtype;
      return dtype == DType::kF32 || dtype == DType::kBool;
    };
    if (context_.target.device == "cpu" && !(std::ranges::all_of(node.inputs, plain) && plain(node.output(0))))
      return "operands in low types are converted where they lie side by side";
    if (std::string why = joinRefusal(node, input, view); !why.empty()) return why;
    const std::int64_t run = neighboursOf(view);
    if (run == elementCount(view.dims) || run >= kLeastNeighbours) return {};
    return fmt::format("{} neighbouring elements; expected {} or more", run, kLeastNeighbours);
  }

  // The last node that reads the memory of a value, nodes that go aside; past the end where it is kept.
  std::size_t lastRead(ValueId value, const std::unordered_set<NodeId>& without) const {
    if (readers_.isKept(value)) return graph_.order().size();
    std::size_t last = 0;
    for (const Use& use : readers_.of(value)) {
      if (without.contains(use.node)) continue;
      const Node& reader = graph_.node(use.node);
      last = std::max(last, place(use.node));
      const OpDef* op = context_.inference.ops().find(reader);
      if (op && op->view && use.input == 0) last = std::max(last, lastRead(reader.output(0), without));
    }
    return last;
  }

  std::string memoryRefusal(const Node& node, const Walk& walk) const {
    ValueId owner = node.input(0);
    while (const NodeId maker = graph_.value(owner).producer) {
      const OpDef* op = context_.inference.ops().find(graph_.node(maker));
      if (!op || !op->view) break;
      owner = graph_.node(maker).input(0);
    }
    if (!graph_.value(owner).producer) return {};  // parameters and the batch are there anyway
    std::int64_t parts = 0;
    for (const ValueId out : node.outputs)
      if (!readers_.of(out).empty()) parts += elementCount(*dimsOf(out));
    const std::int64_t all = elementCount(*dimsOf(node.input(0)));
    std::size_t needed = 0;
    for (const Leaf& leaf : walk.leaves) needed = std::max(needed, place(leaf.node));
    if (parts >= all || lastRead(owner, {walk.moved.begin(), walk.moved.end()}) >= needed) return {};
    return fmt::format("'{}', {} elements, would be kept for {} of them", nameOf(node.input(0)), all, parts);
  }

  void write(const Leaf& leaf, ValueId base) {
    const Dims numbers = leaf.view.attribute();
    const Node& reader = graph_.node(leaf.node);
    auto product = leaf.input < 2 && !isAttention(reader) ? readProduct(graph_, reader) : std::nullopt;
    if (product) {
      (leaf.input == 0 ? product->a : product->b) = base;
      (leaf.input == 0 ? product->viewA : product->viewB) = numbers;
      writeProduct(graph_, leaf.node, Node(graph_.node(leaf.node)), *product);
      return;
    }
    // A node that another pass made stays one of that pass.
    const bool alone = !isAttention(reader) && !isChain(reader) && !isJoin(reader);
    const bool made = alone || isOp(reader, "Concat");
    if (alone) becomeChain(graph_, leaf.node, *loneSteps(reader));
    Node& node = graph_.mutableNode(leaf.node);
    if (isOp(node, "Concat")) {
      node.attrs.set("axis",
                     *normalizeAxis(node.attrs.integer("axis", 0), static_cast<std::int64_t>(leaf.view.dims.size())));
      node.domain = kInternalDomain;
      node.op = "Join";
    }
    node.attrs.set(std::string(viewAttributeOf(node.domain, node.op, leaf.input)), numbers);
    node.inputs[leaf.input] = base;
    if (made) node.provenance.pass = graph_.pass();
    graph_.logChange(leaf.node);
  }

  std::unordered_set<NodeId> gone_;
  bool convolves_ = false;  // the graph does
};

}  // namespace

Status stridedViews(Graph& graph, PassContext& context) { return Viewer(graph, context).run(); }

}  // namespace stepscope
