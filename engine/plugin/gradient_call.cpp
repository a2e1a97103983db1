// Gradient rules of plugins: GradientContext through the functions of ssp_gradient_context.
#include <fmt/format.h>

#include <algorithm>

#include "engine/ops/gradient_context.h"
#include "engine/ops/operators.h"
#include "engine/plugin/attribute_views.h"
#include "engine/plugin/misuse.h"
#include "engine/plugin/op_bridge.h"

namespace stepscope {
namespace {

constexpr std::uint32_t kMostOperands = 4096;

struct GradientCall : ssp_gradient_context {
  GradientCall(GradientContext& gradients, const OpBridge& owner);

  static ssp_value give(ValueId id) { return static_cast<ssp_value>(id.index + 1); }
  bool isGiven(ssp_value value) const { return std::find(given.begin(), given.end(), value) != given.end(); }
  // Remembers it, so that a wrong number is told from a value.
  ssp_value hand(ValueId id) {
    const ssp_value value = give(id);
    if (id && !isGiven(value)) given.push_back(value);
    return value;
  }
  // Invalid for 0 and for what was never given.
  ValueId take(ssp_value value) {
    if (isGiven(value)) return ValueId{static_cast<std::int32_t>(value) - 1};
    misuse.note(fmt::format("uses value {}", value), "one that was given to this call");
    return {};
  }
  bool inputs(std::uint32_t i) {
    if (i < input_count) return true;
    misuse.note(fmt::format("asks for input {}", i), fmt::format("one of {}", input_count));
    return false;
  }
  bool outputs(std::uint32_t o) {
    if (o < output_count) return true;
    misuse.note(fmt::format("asks for output {}", o), fmt::format("one of {}", output_count));
    return false;
  }
  ssp_status add(const char* domain, const char* name, const ssp_value* in, std::uint32_t inCount, const ssp_attr* attrs,
                 std::uint32_t attrCount, ssp_value* out, std::uint32_t outCount);
  void answer(std::uint32_t input, ssp_value gradient);

  GradientContext& g;
  const OpBridge& bridge;
  AttributeViews attributes;
  std::vector<ssp_value> given;
  Misuse misuse;
};

GradientCall& of(ssp_gradient_context* context) { return *static_cast<GradientCall*>(context); }

ssp_status GradientCall::add(const char* domain, const char* name, const ssp_value* in, std::uint32_t inCount,
                             const ssp_attr* attrs, std::uint32_t attrCount, ssp_value* out, std::uint32_t outCount) {
  const auto refuse = [&](std::string found, std::string expected) -> ssp_status {
    misuse.note(std::move(found), std::move(expected));
    for (std::uint32_t o = 0; out != nullptr && o < outCount && o < kMostOperands; ++o) out[o] = 0;
    return SSP_ERROR;
  };
  if (domain == nullptr || name == nullptr || (inCount > 0 && in == nullptr) || out == nullptr || outCount == 0 ||
      inCount > kMostOperands || outCount > kMostOperands)
    return refuse("emits a node without domain, op, inputs or outputs", "all of them");
  const std::string shown = fmt::format("{}{}{}", domain, *domain == '\0' ? "" : ".", name);
  std::uint32_t leastIn = 0, mostIn = 0, mostOut = 0;
  // The ABI offers ONNX as this build has it; no library adds to that domain (check_entry.cpp), so every registry has these.
  if (const OpDef* known = *domain == '\0' ? builtInOperators().ops.find("", name) : nullptr) {
    leastIn = known->inputs.least, mostIn = known->inputs.most, mostOut = known->outputs.most;
  } else if (const ssp_op* own = bridge.library.findOp(domain, name)) {
    leastIn = own->least_inputs, mostIn = own->most_inputs, mostOut = own->most_outputs;
  } else {
    return refuse(fmt::format("emits op '{}'", shown), "one of ONNX at opset 21 or of this plugin");
  }
  if (inCount < leastIn || inCount > mostIn || outCount > mostOut)
    return refuse(fmt::format("emits '{}' with {} inputs and {} outputs", shown, inCount, outCount),
                  fmt::format("{} to {} inputs, up to {} outputs", leastIn, mostIn, mostOut));
  std::vector<ValueId> operands;
  std::string types;
  for (std::uint32_t i = 0; i < inCount; ++i) {
    operands.push_back(in[i] == 0 ? ValueId{} : take(in[i]));
    types += (i == 0 ? "" : ", ") + (operands.back() ? g.typeOf(operands.back()).text() : std::string("absent"));
  }
  auto given = attributesOf(attrs, attrCount);
  if (!given) return refuse(fmt::format("emits '{}': {}", shown, given.error().message), "attributes of the ABI");
  if (misuse.any()) return refuse("", "");
  const std::vector<ValueId> made = g.emit(domain, name, std::move(operands), outCount, std::move(*given));
  for (std::uint32_t o = 0; o < outCount; ++o) {
    if (g.typeOf(made[o]).dtype == DType::kUndefined)
      return refuse(fmt::format("emits {}({}), which has no type", shown, types), "operands that fit the op");
    out[o] = hand(made[o]);
  }
  return SSP_OK;
}

// A gradient is typed and shaped like its value.
void GradientCall::answer(std::uint32_t input, ssp_value gradient) {
  if (!inputs(input)) return;
  const ValueId id = take(gradient);
  if (!id || !g.x(input)) return;
  const ValueType &found = g.typeOf(id), &expected = g.typeOf(g.x(input));
  bool fits = found.dtype == expected.dtype;
  if (found.shape && expected.shape) {
    fits = fits && found.shape->size() == expected.shape->size();
    for (std::size_t axis = 0; fits && axis < found.shape->size(); ++axis) {
      const Dim &a = (*found.shape)[axis], &b = (*expected.shape)[axis];
      fits = !a.known() || !b.known() || a == b;
    }
  }
  if (!fits)
    return misuse.note(fmt::format("gives input {} a gradient {}", input, found.text()),
                       fmt::format("{}, the type of the input", expected.text()));
  g.setGradient(input, id);
}

GradientCall::GradientCall(GradientContext& gradients, const OpBridge& owner)
    : ssp_gradient_context{}, g(gradients), bridge(owner), attributes(owner.schema()) {
  size = sizeof(ssp_gradient_context);
  input_count = static_cast<std::uint32_t>(g.node().inputs.size());
  output_count = static_cast<std::uint32_t>(g.node().outputs.size());
  using Context = ssp_gradient_context;
  x = [](Context* c, std::uint32_t i) { return of(c).inputs(i) ? of(c).hand(of(c).g.x(i)) : 0; };
  y = [](Context* c, std::uint32_t o) { return of(c).outputs(o) ? of(c).hand(of(c).g.y(o)) : 0; };
  dy = [](Context* c, std::uint32_t o) {
    if (!of(c).outputs(o) || !of(c).g.y(o)) return ssp_value{0};
    return of(c).hand(of(c).g.dyOrZeros(o));
  };
  needs = [](Context* c, std::uint32_t i) -> std::int32_t { return of(c).inputs(i) && of(c).g.needs(i) ? 1 : 0; };
  set_gradient = [](Context* c, std::uint32_t i, ssp_value gradient) { of(c).answer(i, gradient); };
  attr = [](Context* c, const char* name) { return of(c).attributes.find(of(c).g.attrs(), name); };
  dtype = [](Context* c, ssp_value v) -> std::int32_t {
    const ValueId id = of(c).take(v);
    return id ? static_cast<std::int32_t>(of(c).g.dtype(id)) : SSP_UNDEFINED;
  };
  rank = [](Context* c, ssp_value v) {
    const ValueId id = of(c).take(v);
    return id && of(c).g.shape(id) ? static_cast<std::int32_t>(of(c).g.shape(id)->size()) : -1;
  };
  emit = [](Context* c, const char* domain, const char* op, const ssp_value* in, std::uint32_t inCount,
            const ssp_attr* attrs, std::uint32_t attrCount, ssp_value* out,
            std::uint32_t outCount) { return of(c).add(domain, op, in, inCount, attrs, attrCount, out, outCount); };
  scalar = [](Context* c, double value, ssp_value like) {
    const ValueId id = of(c).take(like);
    return id ? of(c).hand(of(c).g.scalar(value, id)) : 0;
  };
  ints = [](Context* c, const std::int64_t* values, std::uint32_t count) -> ssp_value {
    if (count > kMostOperands || (count > 0 && values == nullptr)) {
      of(c).misuse.note(fmt::format("makes a list of {} integers", count), "an array of them");
      return 0;
    }
    return of(c).hand(of(c).g.ints({values, values + count}));
  };
  shape_of = [](Context* c, ssp_value v) {
    const ValueId id = of(c).take(v);
    return id ? of(c).hand(of(c).g.shapeOf(id)) : 0;
  };
  reduce_to = [](Context* c, ssp_value v, ssp_value like) {
    const ValueId id = of(c).take(v), other = of(c).take(like);
    return id && other ? of(c).hand(of(c).g.reduceTo(id, other)) : 0;
  };
  fail = [](Context* c, const char* message) { return of(c).misuse.fail(message); };
}

}  // namespace

Status emitPluginGradient(GradientContext& context) {
  const auto& bridge = *static_cast<const OpBridge*>(context.definition().user);
  GradientCall call(context, bridge);
  const std::string where = context.node().label();
  ssp_status status = SSP_ERROR;
  SS_TRY(guarded(bridge.gradientLabel, [&]() -> Status {
    status = bridge.op.gradient(&bridge.op, &call);
    return {};
  }));
  return call.misuse.verdict(bridge.gradientLabel, status, where);
}

}  // namespace stepscope
