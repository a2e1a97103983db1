#include "engine/passes/lower_attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "engine/passes/node_lowering.h"

namespace stepscope {
namespace {

class Transformer : public NodeLowering {
 public:
  using NodeLowering::NodeLowering;

 private:
  std::vector<ValueId> lower() override {
    results_.clear();
    reason_.clear();
    if (is("Attention"))
      attention();
    else if (is("RotaryEmbedding"))
      rotaryEmbedding();
    return reason_.empty() ? results_ : NodeLowering::stay(reason_);
  }

  void stay(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
  }

  // --- Attention

  // What may be attended to: as truth values, as numbers to add, or both; {} where there is no such condition.
  struct Mask {
    ValueId allowed, added;
    bool mayBeEmpty = false;  // for some query
  };

  void attention() {
    const auto q = shapeOf(0), k = shapeOf(1), v = shapeOf(2);
    if (!q || !k || !v || q->size() != k->size() || q->size() != v->size() || (q->size() != 3 && q->size() != 4))
      return stay("the ranks of Q, K and V are unknown or differ; expected three tensors of rank 3 or of rank 4");
    if (static_cast<bool>(node().input(4)) != static_cast<bool>(node().input(5)))
      return stay("one of past_key and past_value is absent; expected both or none");
    if (node().input(4) && node().input(6)) return stay("past_key stands beside nonpad_kv_seqlen; expected one of them");
    type_ = graph_.value(node().input(0)).type.dtype;
    if (!isFloating(type_)) return stay("the type of Q is unknown or no float");
    const bool packed = q->size() == 3;
    const auto heads = [&](const Shape& shape, const char* attribute) -> std::int64_t {
      if (packed) return node().attrs.integer(attribute, 0);
      return shape[1].known() ? shape[1].value() : 0;
    };
    const std::int64_t queryHeads = heads(*q, "q_num_heads"), keyHeads = heads(*k, "kv_num_heads");
    if (queryHeads < 1 || keyHeads < 1)
      return stay(packed ? fmt::format("q_num_heads {} and kv_num_heads {}; expected numbers from 1 for operands of rank 3",
                                       queryHeads, keyHeads)
                         : "the heads of Q and K are not known before the step; expected numbers");
    if (queryHeads % keyHeads != 0)
      return stay(fmt::format("{} heads of queries and {} of keys; expected a multiple", queryHeads, keyHeads));
    const auto width = [&](const Shape& shape, std::int64_t count) {
      return shape.back().known() ? packed ? shape.back().value() / count : shape.back().value() : 0;
    };
    const std::int64_t headSize = width(*q, queryHeads), keySize = width(*k, keyHeads), valueSize = width(*v, keyHeads);
    const auto scale = node().attrs.has("scale") ? static_cast<double>(node().attrs.real("scale", 0))
                                                 : 1 / std::sqrt(static_cast<double>(headSize));
    if (headSize < 1 || keySize < 1 || valueSize < 1)
      return stay("the size of a head is not known before the step; expected a number");

    const auto split = [&](ValueId x, std::int64_t count) {
      return packed ? emit("Transpose", {emit("Reshape", {x, ints({0, 0, count, -1})})}, {{"perm", Integers{0, 2, 1, 3}}})
                    : x;
    };
    const ValueId query = split(node().input(0), queryHeads);
    ValueId key = split(node().input(1), keyHeads), value = split(node().input(2), keyHeads);
    if (node().input(4)) {
      key = emit("Concat", {node().input(4), key}, {{"axis", std::int64_t{2}}});
      value = emit("Concat", {node().input(5), value}, {{"axis", std::int64_t{2}}});
    }
    const ValueId presentKey = key, presentValue = value;
    key = repeated(key, queryHeads, keyHeads, keySize);
    value = repeated(value, queryHeads, keyHeads, valueSize);

    ValueId scores = emit("MatMul", {query, emit("Transpose", {key}, {{"perm", Integers{0, 1, 3, 2}}})});
    if (scale != 1) scores = emit("Mul", {scores, real(scale)});
    const ValueId raw = scores;
    if (const double cap = node().attrs.real("softcap", 0); cap != 0)
      scores = emit("Mul", {emit("Tanh", {emit("Mul", {scores, real(1 / cap)})}), real(cap)});
    const ValueId capped = scores;
    const auto mask = maskOf(query, key);
    if (!mask) return;
    if (mask->added) scores = emit("Add", {scores, emit("Max", {mask->added, real(lowest())})});
    if (mask->allowed) scores = emit("Where", {mask->allowed, scores, real(lowest())});

    const std::int64_t precision = node().attrs.integer("softmax_precision", 0);
    const bool cast = precision != 0 && precision != static_cast<std::int64_t>(onnxType(type_));
    ValueId weights =
        emit("Softmax", {cast ? emit("Cast", {scores}, {{"to", precision}}) : scores}, {{"axis", std::int64_t{-1}}});
    if (cast) weights = emit("CastLike", {weights, query});
    // Guarded behind the product, where there is less to go through.
    const ValueId some = mask->mayBeEmpty ? attendsToSome(*mask) : ValueId{};
    const auto guarded = [&](ValueId x) { return some ? emit("Where", {some, x, real(0)}) : x; };
    ValueId y = guarded(emit("MatMul", {weights, value}));
    if (packed) y = emit("Reshape", {emit("Transpose", {y}, {{"perm", Integers{0, 2, 1, 3}}}), ints({0, 0, -1})});

    results_ = {y};
    if (node().outputs.size() > 1) results_.push_back(own(presentKey));
    if (node().outputs.size() > 2) results_.push_back(own(presentValue));
    if (node().outputs.size() > 3 && node().output(3)) {
      switch (node().attrs.integer("qk_matmul_output_mode", 0)) {
        case 0: results_.push_back(own(raw)); break;
        case 1: results_.push_back(own(capped)); break;
        case 2: results_.push_back(biased(capped, *mask)); break;
        default: results_.push_back(own(guarded(weights)));
      }
    }
  }

  // Every head as often as there are heads of queries to each.
  ValueId repeated(ValueId x, std::int64_t queryHeads, std::int64_t keyHeads, std::int64_t size) {
    if (queryHeads == keyHeads) return x;
    const ValueId copies = emit("Expand", {emit("Unsqueeze", {x, ints({2})}), ints({1, 1, queryHeads / keyHeads, 1, 1})});
    return emit("Reshape", {copies, ints({0, queryHeads, -1, size})});
  }

  std::optional<Mask> maskOf(ValueId query, ValueId key) {
    Mask mask;
    const ValueId rows = extent(query, 2), columns = extent(key, 2);
    const auto require = [&](ValueId condition) {
      mask.allowed = mask.allowed ? emit("And", {mask.allowed, condition}) : condition;
    };
    if (const ValueId given = node().input(3)) {
      const DType type = graph_.value(given).type.dtype;
      if (type != DType::kBool && !isFloating(type)) {
        stay("the type of attn_mask is unknown or neither bool nor float");
        return std::nullopt;
      }
      (type == DType::kBool ? mask.allowed : mask.added) = padded(given, columns, type == DType::kBool);
      mask.mayBeEmpty = true;
    }
    const bool causal = node().attrs.integer("is_causal", 0) != 0;
    const std::int64_t left = node().attrs.integer("left_window_size", -1),
                       right = node().attrs.integer("right_window_size", -1);
    if (!causal && left < 0 && right < 0 && !node().input(6)) return mask;
    // Where a query stands among the keys: [rows, 1], or [batch, 1, rows, 1] where every row of the batch has its own number
    // of keys.
    const ValueId column = range(columns);
    ValueId row = emit("Unsqueeze", {range(rows), ints({1})});
    ValueId filled;
    if (const ValueId past = node().input(4)) row = emit("Add", {row, extent(past, 2)});
    if (node().input(6)) {
      filled = emit("Reshape", {emit("Cast", {node().input(6)}, {{"to", std::int64_t{7}}}), ints({-1, 1, 1, 1})});
      row = emit("Add", {row, emit("Sub", {filled, rows})});
      require(emit("Less", {column, filled}));
      mask.mayBeEmpty = true;
    }
    if (causal) require(emit("LessOrEqual", {column, row}));
    if (left >= 0) require(emit("GreaterOrEqual", {column, emit("Sub", {row, integer(left)})}));
    if (right >= 0) require(emit("LessOrEqual", {column, emit("Add", {row, integer(right)})}));
    if (left >= 0) mask.mayBeEmpty = true;  // queries behind the last key by more than the window
    return mask;
  }

  // A mask may be shorter than there are keys; those that it does not name are masked.
  ValueId padded(ValueId mask, ValueId columns, bool truth) {
    const auto shape = context_.inference.shape(mask), key = shapeOf(1);
    if (!shape || shape->empty() || node().input(4)) return mask;
    const Dim &last = shape->back(), &keys = (*key)[key->size() - 2];
    if (!last.known() || !keys.known() || last.value() >= keys.value()) return mask;
    const auto rank = static_cast<std::int64_t>(shape->size());
    const ValueId missing = emit("Unsqueeze", {emit("Sub", {columns, integer(last.value())}), ints({0})});
    const ValueId pads =
        emit("Concat", {ints(Integers(static_cast<std::size_t>(2 * rank - 1), 0)), missing}, {{"axis", std::int64_t{0}}});
    if (!truth) return emit("Pad", {mask, pads, emit("CastLike", {real(lowest()), mask})});
    const ValueId numbers = emit("Pad", {emit("Cast", {mask}, {{"to", std::int64_t{1}}}), pads});
    return emit("Cast", {numbers}, {{"to", std::int64_t{9}}});
  }

  // [… , rows, 1]: whether a query may attend to a key at all.
  ValueId attendsToSome(const Mask& mask) {
    const ValueId open = graph_.addConstant(node().name + "/open", Tensor::scalar(DType::kF32, 1));
    const ValueId closed = graph_.addConstant(node().name + "/closed", Tensor::scalar(DType::kF32, 0));
    ValueId ways;
    if (mask.added) {
      const ValueId low = emit("CastLike", {real(lowest()), mask.added});
      ways = emit("Where", {emit("Greater", {mask.added, low}), open, closed});
    }
    if (mask.allowed) ways = emit("Where", {mask.allowed, ways ? ways : open, closed});
    const ValueId most = emit("ReduceMax", {ways, ints({-1})}, {{"keepdims", std::int64_t{1}}});
    return emit("Greater", {most, closed});
  }

  // The scores with all that is added to them, -inf where masked.
  ValueId biased(ValueId scores, const Mask& mask) {
    const ValueId infinite = real(-std::numeric_limits<double>::infinity());
    ValueId y = mask.added ? emit("Add", {scores, emit("CastLike", {mask.added, scores})}) : own(scores);
    return mask.allowed ? emit("Where", {mask.allowed, y, infinite}) : y;
  }

  // --- RotaryEmbedding

  void rotaryEmbedding() {
    const auto shape = shapeOf(0), table = shapeOf(1);
    if (!shape || (shape->size() != 3 && shape->size() != 4)) return stay("the rank of X is unknown or not 3 or 4");
    type_ = graph_.value(node().input(0)).type.dtype;
    const bool packed = shape->size() == 3;
    const std::int64_t heads = node().attrs.integer("num_heads", 0);
    if (packed && heads < 1) return stay(fmt::format("num_heads {}; expected a number from 1 for X of rank 3", heads));
    if (!shape->back().known()) return stay("the last extent of X is not known before the step; expected a number");
    const std::int64_t size = packed ? shape->back().value() / heads : shape->back().value();
    const std::int64_t given = node().attrs.integer("rotary_embedding_dim", 0), turned = given == 0 ? size : given;
    if (turned < 2 || turned > size || turned % 2 != 0)
      return stay(fmt::format("rotary_embedding_dim {} of heads of {}; expected an even number up to that", turned, size));
    if (table && table->back().known() && table->back().value() != turned / 2)
      return stay(
          fmt::format("cos_cache has {} columns; expected {}, half of what is turned", table->back().value(), turned / 2));
    // Heads stand behind the positions when X is packed: nothing is transposed.
    const ValueId x = packed ? emit("Reshape", {node().input(0), ints({0, 0, heads, size})}) : node().input(0);
    const auto angles = [&](ValueId cache) {
      if (node().input(3)) cache = emit("Gather", {cache, node().input(3)}, {{"axis", std::int64_t{0}}});
      return emit("Unsqueeze", {cache, ints({packed ? 2 : 1})});
    };
    const ValueId cosine = angles(node().input(1)), sine = angles(node().input(2));
    const bool interleaved = node().attrs.integer("interleaved", 0) != 0;
    const ValueId part = turned == size ? x : slice(x, 0, turned, 1);
    const ValueId a = interleaved ? slice(part, 0, turned, 2) : slice(part, 0, turned / 2, 1);
    const ValueId b = interleaved ? slice(part, 1, turned, 2) : slice(part, turned / 2, turned, 1);
    const ValueId first = emit("Sub", {emit("Mul", {cosine, a}), emit("Mul", {sine, b})});
    const ValueId second = emit("Add", {emit("Mul", {sine, a}), emit("Mul", {cosine, b})});
    ValueId y;
    if (interleaved) {
      const ValueId pairs = joined({emit("Unsqueeze", {first, ints({-1})}), emit("Unsqueeze", {second, ints({-1})})});
      y = emit("Reshape", {pairs, ints({0, 0, 0, turned})});
    } else {
      y = joined({first, second});
    }
    if (turned < size) y = joined({y, slice(x, turned, size, 1)});
    results_ = {packed ? emit("Reshape", {y, ints({0, 0, heads * size})}) : y};
  }

  // --- writing

  double lowest() const {
    return type_ == DType::kF16 ? -65504.0 : static_cast<double>(std::numeric_limits<float>::lowest());
  }
  static std::int64_t onnxType(DType type) {
    return type == DType::kF64 ? 11 : type == DType::kF16 ? 10 : type == DType::kBF16 ? 16 : 1;
  }

  ValueId slice(ValueId x, std::int64_t begin, std::int64_t end, std::int64_t step) {
    return emit("Slice", {x, ints({begin}), ints({end}), ints({-1}), ints({step})});
  }
  ValueId joined(std::vector<ValueId> parts) { return emit("Concat", std::move(parts), {{"axis", std::int64_t{-1}}}); }
  ValueId range(ValueId count) { return emit("Range", {integer(0), count, integer(1)}); }
  // A scalar.
  ValueId extent(ValueId x, std::int64_t axis) {
    return emit("Reshape", {emit("Shape", {x}, {{"start", axis}, {"end", axis + 1}}), ints({})});
  }
  // A value that nobody else makes.
  ValueId own(ValueId x) { return emit("Identity", {x}); }
  ValueId real(double value) { return NodeLowering::real(type_, value); }

  DType type_ = DType::kF32;  // of the node's operands
  std::vector<ValueId> results_;
  std::string reason_;
};

}  // namespace

Status lowerAttention(Graph& graph, PassContext& context) { return Transformer(graph, context).run(); }

}  // namespace stepscope
