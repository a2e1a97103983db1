#include "engine/passes/microsoft_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace stepscope {

Result<ValueId> AttentionRaiser::addedMask(ValueId mask, float masked, ValueId like) {
  const auto& shape = graph_.value(mask).type.shape;
  if (!shape || (shape->size() != 2 && shape->size() != 3))
    return error("the mask is " + graph_.value(mask).type.text() + "; expected a declared mask of rank 2 or 3");
  const ValueId wide =
      emit("Unsqueeze",
           {mask, ints("axes", shape->size() == 2 ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{1})});
  const ValueId kept = emit("CastLike", {wide, like});
  return emit("Mul", {emit("Sub", {factor("one", 1, like), kept}), factor("masked", masked, like)});
}

Status AttentionRaiser::attend(ValueId query, ValueId key, ValueId value, ValueId added) {
  const std::int64_t heads = node().attrs.integer("num_heads", 0);
  Attributes attrs{{"q_num_heads", heads}, {"kv_num_heads", heads}};
  if (const float scale = node().attrs.real("scale", 0); scale != 0) attrs.set("scale", scale);
  if (node().attrs.integer("unidirectional", 0) != 0) attrs.set("is_causal", std::int64_t{1});
  Node& changed = graph_.mutableNode(node_);
  changed.attrs = std::move(attrs);
  changed.inputs = {query, key, value};
  if (added) changed.inputs.push_back(added);
  return become("Attention", 23);
}

Status AttentionRaiser::onlyFirstOutput() {
  for (std::size_t o = 1; o < node().outputs.size(); ++o) {
    const ValueId out = node().output(o);
    if (!out) continue;
    if (isRead(out))
      return error("output '" + graph_.value(out).name + "' (keys and values for later) is used; expected one output");
    graph_.removeValue(out);
  }
  graph_.mutableNode(node_).outputs.resize(1);
  return {};
}

// x, weights, bias?, mask?, past?, added?, past length? → result, present?
Status AttentionRaiser::attention() {
  if (input(4) || input(6)) return error("keys and values of the past; expected attention without them");
  SS_TRY(onlyFirstOutput());
  ValueId projected = emit("MatMul", {input(0), input(1)});
  if (input(2)) projected = emit("Add", {projected, input(2)});
  Attributes split{{"axis", std::int64_t{-1}}, {"num_outputs", std::int64_t{3}}};
  std::vector<ValueId> operands{projected};
  if (const auto sizes = node().attrs.integers("qkv_hidden_sizes"); sizes.size() == 3) {
    split.erase("num_outputs");
    operands.push_back(ints("sizes", sizes));
  }
  const std::vector<ValueId> qkv = emitAll("Split", operands, 3, std::move(split));
  ValueId added = input(5);
  if (input(3)) {
    SS_ASSIGN(const ValueId mask, addedMask(input(3), node().attrs.real("mask_filter_value", -10000.0f), input(0)));
    added = added ? emit("Add", {added, mask}) : mask;
  }
  return attend(qkv[0], qkv[1], qkv[2], added);
}

// query, key, value, bias?, mask of keys?, added?, past… → result, present…
Status AttentionRaiser::multiHeadAttention() {
  if (!input(1) || !input(2)) return error("key and value are packed with the query; expected three operands");
  for (std::size_t i = 6; i < node().inputs.size(); ++i)
    if (input(i)) return error("keys and values of the past; expected attention without them");
  SS_TRY(onlyFirstOutput());
  std::vector<ValueId> qkv{input(0), input(1), input(2)};
  if (const ValueId bias = input(3)) {
    const std::vector<ValueId> parts =
        emitAll("Split", {bias}, 3, {{"axis", std::int64_t{0}}, {"num_outputs", std::int64_t{3}}});
    for (std::size_t i = 0; i < 3; ++i) qkv[i] = emit("Add", {qkv[i], parts[i]});
  }
  ValueId added = input(5);
  if (input(4)) {
    SS_ASSIGN(const ValueId mask, addedMask(input(4), node().attrs.real("mask_filter_value", -10000.0f), input(0)));
    added = added ? emit("Add", {added, mask}) : mask;
  }
  return attend(qkv[0], qkv[1], qkv[2], added);
}

// x, positions, cos, sin
Status AttentionRaiser::rotaryEmbedding() {
  const std::vector<ValueId> inputs = node().inputs;
  if (inputs.size() < 4) return error(std::to_string(inputs.size()) + " inputs; expected 4");
  const auto& shape = graph_.value(inputs[1]).type.shape;
  if (shape && shape->size() != 2)
    return error("positions are " + graph_.value(inputs[1]).type.text() + "; expected [batch, sequence]");
  graph_.mutableNode(node_).inputs = {inputs[0], inputs[2], inputs[3], inputs[1]};
  for (const char* name : {"is_packed_batching", "scale"}) eraseAttribute(name);
  return become("RotaryEmbedding", 23);
}

// --- GroupQueryAttention
//
// query, key?, value?, past key?, past value?, seqlens_k, total length, cos?, sin?, positions?, bias? → result, present
// key?, present value?

namespace {

constexpr std::array kRefusedInputs{"head_sink", "k_scale", "v_scale", "a norm of q", "a norm of k"};
constexpr std::size_t kFirstRefused = 11;

constexpr const char* kCounted[] = {"smooth_softmax", "qk_output", "kv_cache_bit_width"};
constexpr const char* kQuantised[] = {"k_quant_type", "v_quant_type"};

}  // namespace

Status AttentionRaiser::checkGroupQuery() {
  const auto problem = [&](const std::string& found) {
    return error(found + "; expected query, key and value, a past, seqlens_k, rotary tables, positions and a bias");
  };
  for (std::size_t i = kFirstRefused; i < node().inputs.size(); ++i)
    if (input(i))
      return problem(
          fmt::format("input {} ({})", i, kRefusedInputs[std::min(i - kFirstRefused, kRefusedInputs.size() - 1)]));
  for (const char* name : kCounted)
    if (const std::int64_t value = node().attrs.integer(name, 0); value > 0)
      return problem(fmt::format("{} = {}", name, value));
  for (const char* name : kQuantised)
    if (const std::string value = node().attrs.text(name, "NONE"); value != "NONE")
      return problem(fmt::format("{} = {}", name, value));
  if (const ValueId scores = node().output(3); scores && isRead(scores))
    return problem("output '" + graph_.value(scores).name + "' (scores) is used");
  if (static_cast<bool>(input(1)) != static_cast<bool>(input(2)))
    return error("one of key and value is absent; expected both or, packed with the query, none");
  if (static_cast<bool>(input(3)) != static_cast<bool>(input(4)))
    return error("one of past_key and past_value is absent; expected both or none");
  if (input(3) && !input(6)) return error("total_sequence_length is absent; expected the extent of what present_key has");
  if (!input(5)) return error("seqlens_k is absent; expected the last position of each batch entry");
  const std::int64_t heads = node().attrs.integer("num_heads", 0), keyHeads = node().attrs.integer("kv_num_heads", 0);
  if (heads < 1 || keyHeads < 1 || heads % keyHeads != 0)
    return error(fmt::format("num_heads {} and kv_num_heads {}; expected numbers from 1, the first a multiple of the second",
                             heads, keyHeads));
  if (node().attrs.integer("do_rotary", 0) != 0 && (!input(7) || !input(8)))
    return error("do_rotary without cos_cache and sin_cache; expected both");
  if (node().attrs.integer("causal", 1) == 0 && node().attrs.integer("local_window_size", -1) >= 0)
    return error("local_window_size with causal = 0; expected a causal window");
  return {};
}

// Where the rows of a GroupQueryAttention stand among its keys.
struct AttentionRaiser::Positions {
  ValueId rows, row;      // S as [1]; 0 .. S - 1
  ValueId length;         // [B, 1] keys that count
  ValueId before;         // [B, 1] keys of the past that count; absent without a past
  ValueId past, columns;  // extent of the past as [1], absent without one; 0 .. keys - 1
};

AttentionRaiser::Positions AttentionRaiser::positionsOf() {
  Positions at;
  at.rows = count(input(0), 1);
  at.row = range(at.rows);
  const ValueId last = emit("Reshape", {emit("Cast", {input(5)}, {{"to", std::int64_t{7}}}), ints("column", {-1, 1})});
  at.length = emit("Add", {last, ints("one", {1})});
  at.columns = at.row;
  if (!input(3)) return at;
  at.before = emit("Max", {emit("Sub", {at.length, at.rows}), ints("zero", {0})});
  at.past = count(input(3), 2);
  at.columns = range(emit("Add", {at.past, at.rows}));
  return at;
}

ValueId AttentionRaiser::turned(ValueId x, ValueId positions) {
  if (node().attrs.integer("do_rotary", 0) == 0) return x;
  Attributes attrs;
  if (node().attrs.integer("rotary_interleaved", 0) != 0) attrs.set("interleaved", std::int64_t{1});
  const auto shape = graph_.value(input(7)).type.shape;  // a part of each head is turned where the table is narrow
  if (shape && shape->size() == 2 && shape->back().known()) attrs.set("rotary_embedding_dim", 2 * shape->back().value());
  return emit("RotaryEmbedding", {x, input(7), input(8), positions}, std::move(attrs));
}

// [B, heads, keys, size]: the part of the past that counts, then `added`, then the rest.
ValueId AttentionRaiser::inOrder(ValueId past, ValueId added, const Positions& at) {
  if (!at.past) return added;
  const ValueId all = transposed(emit("Concat", {past, added}, {{"axis", std::int64_t{2}}}));
  const ValueId behind = emit("Add", {at.columns, emit("Sub", {at.past, at.before})});
  const ValueId place = emit("Where", {emit("Less", {at.columns, at.before}), at.columns, behind});
  const ValueId last = emit("Sub", {emit("Add", {at.past, at.rows}), ints("one", {1})});
  const ValueId places = emit("Unsqueeze", {emit("Min", {place, last}), ints("axis", {2})});
  return transposed(emit("GatherND", {all, places}, {{"batch_dims", std::int64_t{1}}}));
}

ValueId AttentionRaiser::present(ValueId ordered, const Positions& at) {
  if (!at.past) return ordered;
  const ValueId filled = emit("Unsqueeze", {emit("Add", {at.before, at.rows}), ints("axes", {2, 3})});
  const ValueId column = emit("Unsqueeze", {at.columns, ints("axis", {1})});
  const ValueId kept = emit("Where", {emit("Less", {column, filled}), ordered, factor("nothing", 0, ordered)});
  const ValueId total = emit("Reshape", {emit("Cast", {input(6)}, {{"to", std::int64_t{7}}}), ints("vector", {1})});
  return emit("Slice", {kept, ints("zero", {0}), emit("Max", {total, at.past}), ints("axis", {2})});
}

// [B, 1, S or 1, keys]
ValueId AttentionRaiser::groupQueryMask(const Positions& at) {
  ValueId allowed = emit("Less", {at.columns, emit("Unsqueeze", {at.length, ints("axes", {2, 3})})});
  if (node().attrs.integer("causal", 1) == 0) return allowed;
  const ValueId row = at.before ? emit("Unsqueeze", {emit("Add", {at.before, at.row}), ints("axes", {1, 3})})
                                : emit("Unsqueeze", {at.row, ints("axis", {1})});
  allowed = emit("And", {allowed, emit("LessOrEqual", {at.columns, row})});
  const std::int64_t window = node().attrs.integer("local_window_size", -1);
  if (window < 0) return allowed;
  return emit("And", {allowed, emit("Greater", {at.columns, emit("Sub", {row, ints("window", {window})})})});
}

// The bias where attention is allowed, -inf elsewhere. It has a column per position up to the total length.
ValueId AttentionRaiser::biased(ValueId allowed, const Positions& at) {
  ValueId bias = input(10);
  if (at.past) {
    const ValueId missing = emit("Sub", {emit("Add", {at.past, at.rows}), count(bias, 3)});
    const ValueId pads =
        emit("Concat", {ints("none", std::vector<std::int64_t>(7, 0)), missing}, {{"axis", std::int64_t{0}}});
    bias = emit("Pad", {bias, pads});
  }
  return emit("Where", {allowed, bias, factor("masked", -std::numeric_limits<float>::infinity(), bias)});
}

Status AttentionRaiser::groupQueryAttention() {
  SS_TRY(checkGroupQuery());
  const std::int64_t heads = node().attrs.integer("num_heads", 0), keyHeads = node().attrs.integer("kv_num_heads", 0);
  const auto byHead = [&](ValueId x, std::int64_t count) { return emit("Reshape", {x, ints("heads", {0, 0, count, -1})}); };
  std::vector<ValueId> qkv;  // [B, S, heads, size]
  if (input(1))
    qkv = {byHead(input(0), heads), byHead(input(1), keyHeads), byHead(input(2), keyHeads)};
  else
    qkv = emitAll("Split", {byHead(input(0), heads + 2 * keyHeads), ints("sizes", {heads, keyHeads, keyHeads})}, 3,
                  {{"axis", std::int64_t{2}}});
  for (ValueId& x : qkv) x = transposed(x);

  const Positions at = positionsOf();
  const ValueId positions = input(9)    ? input(9)
                            : at.before ? emit("Add", {at.before, at.row})
                                        : emit("Unsqueeze", {at.row, ints("axis", {0})});
  const ValueId query = turned(qkv[0], positions);
  const ValueId key = inOrder(input(3), turned(qkv[1], positions), at), value = inOrder(input(4), qkv[2], at);
  ValueId mask = groupQueryMask(at);
  if (input(10)) mask = biased(mask, at);

  const std::array held{key, value};
  for (std::size_t o = 1; o < node().outputs.size(); ++o) {
    const ValueId out = node().output(o);
    if (!out) continue;
    if (o < 3 && isRead(out))
      handOn(out, present(held[o - 1], at));
    else
      graph_.removeValue(out);
  }
  Attributes attrs;
  if (const float scale = node().attrs.real("scale", 0); scale != 0) attrs.set("scale", scale);
  if (const float softcap = node().attrs.real("softcap", 0); softcap != 0) attrs.set("softcap", softcap);
  Node& changed = graph_.mutableNode(node_);
  changed.outputs.resize(1);
  changed.attrs = std::move(attrs);
  changed.inputs = {query, key, value, mask};
  behind("Reshape", {ints("packed", {0, 0, -1})});
  behind("Transpose", {}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
  return become("Attention", 23);
}

ValueId AttentionRaiser::count(ValueId x, std::int64_t axis) {
  return emit("Shape", {x}, {{"start", axis}, {"end", axis + 1}});
}

ValueId AttentionRaiser::range(ValueId count) {
  const auto whole = [&](const char* name, std::int64_t value) {
    return graph_.addConstant(node().name + "/" + name, Tensor::scalar(DType::kI64, static_cast<double>(value)));
  };
  return emit("Range", {whole("first", 0), emit("Reshape", {count, ints("scalar", {})}), whole("step", 1)});
}

ValueId AttentionRaiser::transposed(ValueId x) {
  return emit("Transpose", {x}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
}

}  // namespace stepscope
