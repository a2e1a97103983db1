// Shape rules of plugins: ShapeContext through the functions of ssp_shape_context.
#include <fmt/format.h>

#include <deque>
#include <optional>

#include "engine/ops/shape_context.h"
#include "engine/plugin/attribute_views.h"
#include "engine/plugin/misuse.h"
#include "engine/plugin/op_bridge.h"

namespace stepscope {
namespace {

constexpr std::int32_t kMostAxes = 64;

struct ShapeCall : ssp_shape_context {
  ShapeCall(ShapeContext& shapes, const OpBridge& bridge);

  ssp_dim give(Dim dim) {
    dims.push_back(std::move(dim));
    return static_cast<ssp_dim>(dims.size());
  }
  // 0 for a handle that was never given.
  Dim take(ssp_dim handle) {
    if (handle >= 1 && handle <= dims.size()) return dims[handle - 1];
    misuse.note(fmt::format("uses extent {}", handle), "one that was given to this call");
    return Dim(0);
  }
  bool isInput(std::uint32_t i) {
    if (i < c.inputCount()) return true;
    misuse.note(fmt::format("asks for input {}", i), fmt::format("one of {}", c.inputCount()));
    return false;
  }
  bool isOutput(std::uint32_t o) {
    if (o < c.outputCount()) return true;
    misuse.note(fmt::format("asks for output {}", o), fmt::format("one of {}", c.outputCount()));
    return false;
  }
  void set(std::uint32_t output, DType dtype, std::optional<Shape> shape) {
    answered[output] = true;
    c.setOutput(output, dtype, std::move(shape));
  }

  ShapeContext& c;
  std::deque<Dim> dims;
  std::deque<std::string> texts;
  AttributeViews attributes;
  std::vector<bool> answered;
  Misuse misuse;
};

ShapeCall& of(ssp_shape_context* context) { return *static_cast<ShapeCall*>(context); }

template <typename Combine>
ssp_dim combine(ssp_shape_context* context, ssp_dim a, ssp_dim b, Combine&& result) {
  ShapeCall& call = of(context);
  return call.give(result(call, call.take(a), call.take(b)));
}

std::optional<Dim> divisor(ShapeCall& call, const Dim& by) {
  if (!by.known() || by.value() > 0) return by;
  call.misuse.note(fmt::format("divides by {}", by.value()), "a divisor above 0");
  return std::nullopt;
}

void setOutput(ssp_shape_context* context, std::uint32_t output, std::int32_t dtype, std::int32_t rank,
               const ssp_dim* dims) {
  ShapeCall& call = of(context);
  if (!call.isOutput(output)) return;
  const auto type = dtypeFromOnnx(dtype);
  if (!type || *type == DType::kUndefined || *type == DType::kString)
    return call.misuse.note(fmt::format("gives output {} the element type {}", output, dtype), "one of the ABI");
  if (rank < -1 || rank > kMostAxes || (rank > 0 && dims == nullptr))
    return call.misuse.note(fmt::format("gives output {} the rank {}", output, rank),
                            fmt::format("-1 to {}, with the extents", kMostAxes));
  if (rank < 0) return call.set(output, *type, std::nullopt);
  Shape shape;
  for (std::int32_t axis = 0; axis < rank; ++axis) {
    shape.push_back(call.take(dims[axis]));
    if (shape.back().known() && shape.back().value() < 0)
      call.misuse.note(fmt::format("gives axis {} of output {} the extent {}", axis, output, shape.back().value()),
                       "no extent below 0");
  }
  if (!call.misuse.any()) call.set(output, *type, std::move(shape));
}

ShapeCall::ShapeCall(ShapeContext& shapes, const OpBridge& bridge)
    : ssp_shape_context{}, c(shapes), attributes(bridge.schema()), answered(shapes.outputCount(), false) {
  size = sizeof(ssp_shape_context);
  input_count = static_cast<std::uint32_t>(c.inputCount());
  output_count = static_cast<std::uint32_t>(c.outputCount());
  has_input = [](ssp_shape_context* x, std::uint32_t i) -> std::int32_t { return of(x).c.hasInput(i) ? 1 : 0; };
  has_output = [](ssp_shape_context* x, std::uint32_t o) -> std::int32_t { return of(x).c.hasOutput(o) ? 1 : 0; };
  input_dtype = [](ssp_shape_context* x, std::uint32_t i) {
    return of(x).isInput(i) ? static_cast<std::int32_t>(of(x).c.inputDType(i)) : SSP_UNDEFINED;
  };
  input_rank = [](ssp_shape_context* x, std::uint32_t i) {
    if (!of(x).isInput(i) || !of(x).c.rankKnown(i)) return -1;
    return static_cast<std::int32_t>(of(x).c.inputShape(i)->size());
  };
  input_dim = [](ssp_shape_context* x, std::uint32_t i, std::uint32_t axis) -> ssp_dim {
    ShapeCall& call = of(x);
    if (!call.isInput(i)) return 0;
    const auto& shape = call.c.inputShape(i);
    if (shape && axis < shape->size()) return call.give((*shape)[axis]);
    call.misuse.note(fmt::format("asks for axis {} of input {}", axis, i),
                     shape ? fmt::format("one of {}", shape->size()) : "a rank that is known");
    return 0;
  };
  attr = [](ssp_shape_context* x, const char* name) { return of(x).attributes.find(of(x).c.attrs(), name); };
  input_ints = [](ssp_shape_context* x, std::uint32_t i, std::int64_t* out, std::uint32_t capacity) -> std::int32_t {
    if (!of(x).isInput(i) || !of(x).c.hasInput(i) || !isInteger(of(x).c.inputDType(i))) return -1;
    const auto known = of(x).c.integers(i);
    if (!known || known->size() > capacity || (capacity > 0 && out == nullptr)) return -1;
    std::copy(known->begin(), known->end(), out);
    return static_cast<std::int32_t>(known->size());
  };
  number = [](ssp_shape_context* x, std::int64_t value) { return of(x).give(Dim(value)); };
  add = [](ssp_shape_context* x, ssp_dim a, ssp_dim b) {
    return combine(x, a, b, [](ShapeCall&, const Dim& l, const Dim& r) { return l + r; });
  };
  subtract = [](ssp_shape_context* x, ssp_dim a, ssp_dim b) {
    return combine(x, a, b, [](ShapeCall&, const Dim& l, const Dim& r) { return l - r; });
  };
  multiply = [](ssp_shape_context* x, ssp_dim a, ssp_dim b) {
    return combine(x, a, b, [](ShapeCall&, const Dim& l, const Dim& r) { return l * r; });
  };
  floor_divide = [](ssp_shape_context* x, ssp_dim a, ssp_dim b) {
    return combine(x, a, b, [](ShapeCall& call, const Dim& l, const Dim& r) {
      return divisor(call, r) ? Dim::floorDiv(l, r) : Dim(0);
    });
  };
  ceil_divide = [](ssp_shape_context* x, ssp_dim a, ssp_dim b) {
    return combine(
        x, a, b, [](ShapeCall& call, const Dim& l, const Dim& r) { return divisor(call, r) ? Dim::ceilDiv(l, r) : Dim(0); });
  };
  fresh = [](ssp_shape_context* x, std::uint32_t output, std::uint32_t axis) {
    return of(x).isOutput(output) ? of(x).give(of(x).c.freshDim(output, axis)) : ssp_dim{0};
  };
  dim_value = [](ssp_shape_context* x, ssp_dim dim, std::int64_t* value) -> std::int32_t {
    const Dim known = of(x).take(dim);
    if (known.known() && value != nullptr) *value = known.value();
    return known.known() ? 1 : 0;
  };
  dim_text = [](ssp_shape_context* x, ssp_dim dim) { return of(x).texts.emplace_back(of(x).take(dim).text()).c_str(); };
  unify = [](ssp_shape_context* x, ssp_dim a, ssp_dim b, const char* what) -> ssp_status {
    ShapeCall& call = of(x);
    const Dim left = call.take(a), right = call.take(b);
    if (call.c.unify(left, right, what == nullptr ? "extents" : what)) return SSP_OK;
    return call.misuse.fail(
        fmt::format("{}: {} and {} differ", what == nullptr ? "extents" : what, left.text(), right.text()).c_str());
  };
  set_output = setOutput;
  set_output_like = [](ssp_shape_context* x, std::uint32_t output, std::uint32_t input) {
    ShapeCall& call = of(x);
    if (call.isOutput(output) && call.isInput(input)) call.set(output, call.c.inputDType(input), call.c.inputShape(input));
  };
  fail = [](ssp_shape_context* x, const char* message) { return of(x).misuse.fail(message); };
}

}  // namespace

Status inferPluginShape(ShapeContext& context) {
  const auto& bridge = *static_cast<const OpBridge*>(context.op().user);
  if (const std::string wrong = attributeProblem(bridge.schema(), context.attrs()); !wrong.empty())
    return context.error(wrong);
  ShapeCall call(context, bridge);
  ssp_status status = SSP_ERROR;
  SS_TRY(guarded(bridge.shapeLabel, [&]() -> Status {
    status = bridge.op.infer_shape(&bridge.op, &call);
    return {};
  }));
  for (std::size_t o = 0; status == SSP_OK && o < call.answered.size(); ++o)
    if (context.hasOutput(o) && !call.answered[o])
      call.misuse.note(fmt::format("gives output {} no type", o), "set_output for each output that the node has");
  return call.misuse.verdict(bridge.shapeLabel, status, context.node().label());
}

}  // namespace stepscope
