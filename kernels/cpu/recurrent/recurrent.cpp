#include "kernels/cpu/recurrent/recurrent.h"

#include <algorithm>
#include <cctype>

namespace stepscope::cpu {
namespace {

// The activations of every direction, in small letters; empty when the attribute is not there.
std::vector<std::string> activationNames(const Attributes& attrs) {
  std::vector<std::string> names;
  if (const AttrValue* value = attrs.find("activations");
      value != nullptr && std::holds_alternative<std::vector<std::string>>(*value))
    names = std::get<std::vector<std::string>>(*value);
  for (std::string& name : names)
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return names;
}

bool isFloat(const KernelSpec& spec, std::size_t i) {
  return spec.inputs[i].dtype == DType::kF32 && !spec.inputs[i].dynamic;
}

}  // namespace

Result<RecurrentExtents> recurrentExtents(const KernelSpec& spec, std::size_t first) {
  const auto refuse = [&](const char* what) {
    return unsupported(spec.op + ": " + what + "; falls back to the reference kernel");
  };
  if (spec.inputs.size() < first + 3) return refuse("X, W or R is missing");
  for (std::size_t i = 0; i < spec.inputs.size(); ++i)
    if (i != first + 4 && spec.inputPresent(i) && !isFloat(spec, i)) return refuse("an operand that is not float32");
  for (std::size_t i = first; i < first + 3; ++i)
    if (!spec.inputPresent(i) || spec.inputs[i].dims.size() != 3) return refuse("X, W or R of another rank than 3");
  if (spec.inputPresent(first + 7)) return refuse("peepholes");
  if (spec.attrs.real("clip", 0.0F) != 0 || spec.attrs.integer("input_forget", 0) != 0)
    return refuse("clip or coupled gates");

  RecurrentExtents e;
  const std::string direction = spec.attrs.text("direction", "forward");
  e.directions = direction == "bidirectional" ? 2 : 1;
  e.reversed = {direction == "reverse", true};
  const std::string_view op = spec.op;
  std::vector<std::string> expected{"tanh"};
  if (op.starts_with("LSTM")) {
    e.gates = 4;
    expected = {"sigmoid", "tanh", "tanh"};
  } else if (op.starts_with("GRU")) {
    e.cell = Cell::kGru;
    e.gates = 3;
    expected = {"sigmoid", "tanh"};
    if (spec.attrs.integer("linear_before_reset", 0) == 0) return refuse("the reset gate before the product");
  } else {
    e.cell = Cell::kTanh;
  }
  const std::vector<std::string> names = activationNames(spec.attrs);
  if (!names.empty() && e.cell == Cell::kTanh && names[0] == "relu") {
    e.cell = Cell::kRelu;
    expected = {"relu"};
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] != expected[i % expected.size()]) return refuse("other activations");
  if (!names.empty() && names.size() != expected.size() * static_cast<std::size_t>(e.directions))
    return refuse("another number of activations");

  e.batchFirst = spec.attrs.integer("layout", 0) != 0;
  const Dims &x = spec.inputs[first].dims, &w = spec.inputs[first + 1].dims, &r = spec.inputs[first + 2].dims;
  e.steps = x[e.batchFirst ? 1 : 0];
  e.batch = x[e.batchFirst ? 0 : 1];
  e.input = x[2];
  e.hidden = r[2];
  e.threads = spec.threads;
  if (e.rows() == 0 || e.input == 0 || e.hidden == 0) return refuse("an extent is 0");
  const Dims state = e.batchFirst ? Dims{e.batch, e.directions, e.hidden} : Dims{e.directions, e.batch, e.hidden};
  const auto has = [&](std::size_t i, const Dims& dims) {
    return !spec.inputPresent(first + i) || spec.inputs[first + i].dims == dims;
  };
  if (w != Dims{e.directions, e.width(), e.input} || r != Dims{e.directions, e.width(), e.hidden} ||
      !has(3, {e.directions, 2 * e.width()}) || !has(4, {e.batch}) || !has(5, state) || !has(6, state))
    return refuse("operands whose extents differ");
  if (spec.inputPresent(first + 4) && spec.inputs[first + 4].dtype != DType::kI32)
    return refuse("lengths that are not int32");
  return e;
}

Status readLengths(const KernelCall& call, std::size_t input, const RecurrentExtents& e, std::int32_t* lengths) {
  if (!call.inputPresent(input)) {
    std::fill_n(lengths, e.batch, static_cast<std::int32_t>(e.steps));
    return {};
  }
  const auto* given = static_cast<const std::int32_t*>(call.inputs[input].data);
  for (std::int64_t n = 0; n < e.batch; ++n) {
    if (given[n] < 0 || given[n] > e.steps)
      return invalid("sequence_lens: " + std::to_string(given[n]) + "; expected 0.." + std::to_string(e.steps));
    lengths[n] = given[n];
  }
  return {};
}

}  // namespace stepscope::cpu
