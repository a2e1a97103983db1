#include "engine/step/values.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/data/element_index.h"
#include "engine/data/npy.h"
#include "engine/data/shown_name.h"
#include "engine/profile/compare_tensors.h"
#include "engine/profile/tensor_data.h"
#include "engine/snapshot/utf8.h"
#include "engine/step/row_losses.h"

namespace stepscope {
namespace {

// Floating types round; integers and bool hold a number or they do not.
bool holdsNumber(DType dtype, double number) {
  if (isFloating(dtype)) return true;
  if (std::trunc(number) != number) return false;  // NaN among them
  if (dtype == DType::kBool) return number == 0 || number == 1;
  const int bits = 8 * static_cast<int>(dtypeSize(dtype)) - (isUnsigned(dtype) ? 0 : 1);
  return number < std::ldexp(1.0, bits) && number >= (isUnsigned(dtype) ? 0.0 : -std::ldexp(1.0, bits));
}

std::string typeText(const TensorView& view) { return fmt::format("{}{}", dtypeName(view.dtype), dimsText(view.dims)); }

std::string arrayName(const std::filesystem::path& path) {
  return fmt::format("array '{}'", shownName(path.filename().string()));
}

// With the file's name in the error.
Result<Tensor> readArray(const std::filesystem::path& path) {
  auto file = readNpyFile(path);
  if (file) return file;
  constexpr std::string_view kUnnamed = "array file: ";
  std::string message = file.error().message;
  if (message.starts_with(kUnnamed)) message = arrayName(path) + ": " + message.substr(kUnnamed.size());
  return fail(file.error().code, std::move(message));
}

Status sameShape(const std::string& what, const TensorView& found, const TensorView& expected) {
  const bool text = found.dtype == DType::kString || expected.dtype == DType::kString;
  if (found.dims == expected.dims && (!text || found.dtype == expected.dtype)) return {};
  return invalid(fmt::format("{}: found {}; expected {}", what, typeText(found), typeText(expected)));
}

// A copy of the contents, of a value that a person may change.
Result<Tensor> editable(const Stepper& stepper, ValueId id) {
  SS_ASSIGN(const TensorView view, stepper.value(id));
  const Value& named = stepper.graph().value(id);
  if (view.dtype == DType::kString) return unsupported(fmt::format("value '{}': strings cannot be edited", named.name));
  if (named.role == ValueRole::kConstant)
    return unsupported(
        fmt::format("value '{}': a constant of the graph; expected an input, parameter or computed value", named.name));
  return Tensor(view.dtype, view.dims, nullptr, view.data).clone();
}

// What outlives a step: state, or the next version of one, which lies over it.
bool isState(const Stepper& stepper, ValueId id) {
  const ValueRole role = stepper.graph().value(id).role;
  if (role == ValueRole::kInitializer || role == ValueRole::kState) return true;
  const ExecutionPlan& plan = stepper.plan();
  const int buffer = plan.bufferOfValue[static_cast<std::size_t>(id.index)];
  return buffer >= 0 && plan.buffers[static_cast<std::size_t>(plan.root(buffer))].home == Home::kState;
}

Dims firstNotFinite(const TensorView& view) {
  std::int64_t element = 0;
  while (element < view.elements() && std::isfinite(elementAsDouble(view, element))) ++element;
  return indexOf(element, view.dims);
}

// Row-major offset of an element.
Result<std::int64_t> offsetOf(const Dims& dims, const std::vector<std::int64_t>& index) {
  if (index.size() != dims.size())
    return invalid(fmt::format("edit: index of rank {}; expected rank {}", index.size(), dims.size()));
  const Dims strides = rowMajorStrides(dims);
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < index.size(); ++axis) {
    if (index[axis] < 0 || index[axis] >= dims[axis])
      return invalid(fmt::format("edit: index {} on axis {}; expected 0..{}", index[axis], axis, dims[axis] - 1));
    offset += index[axis] * strides[axis];
  }
  return offset;
}

}  // namespace

Result<snapshot::TensorData> fetchValue(const Stepper& stepper, ValueId id, const std::vector<std::int64_t>& begin,
                                        const std::vector<std::int64_t>& extent, bool statistics, std::int64_t limit) {
  if (!id || static_cast<std::size_t>(id.index) >= stepper.graph().valueCapacity())
    return fail(ErrorCode::kNotFound, fmt::format("value {}: no such value", id.index));
  const Value& named = stepper.graph().value(id);
  snapshot::TensorData out;
  out.set_value(id.index);
  out.set_step(stepper.shownStep());
  out.set_name(toUtf8(named.name));
  out.set_dtype(std::string(dtypeName(named.type.dtype)));
  const auto view = stepper.value(id);
  if (!view) {
    if (named.type.shape)
      for (const Dim& dim : *named.type.shape) out.add_dims(dim.known() ? dim.value() : -1);
    out.set_unavailable(toUtf8(view.error().message));
    out.set_elsewhere(!stepper.holds(id));
    return out;
  }
  out.set_current(stepper.inStep() || named.role != ValueRole::kNodeOutput);
  for (const std::int64_t d : view->dims) out.add_dims(d);
  if (statistics && view->dtype != DType::kString) {
    *out.mutable_statistics() = tensorStatistics(*view);
    if (out.statistics().nan() + out.statistics().inf() > 0)
      for (const std::int64_t i : firstNotFinite(*view)) out.add_first_not_finite(i);
  }
  SS_TRY(addContents(*view, begin, extent, limit, out));
  return out;
}

Status editValue(Stepper& stepper, ValueId id, const std::vector<std::int64_t>& index, double number, bool fill) {
  SS_ASSIGN(const Tensor contents, editable(stepper, id));
  if (!holdsNumber(contents.dtype(), number))
    return invalid(fmt::format("value '{}': {} is not a number of type {}; expected {}", stepper.graph().value(id).name,
                               number, dtypeName(contents.dtype()),
                               contents.dtype() == DType::kBool ? "0 or 1" : "a whole number that the type can hold"));
  if (fill) {
    for (std::int64_t k = 0; k < contents.elements(); ++k) storeElement(contents.view(), k, number);
  } else {
    SS_ASSIGN(const std::int64_t offset, offsetOf(contents.dims(), index));
    storeElement(contents.view(), offset, number);
  }
  return editData(stepper, id, contents.view());
}

Status editData(Stepper& stepper, ValueId id, const TensorView& data) {
  SS_ASSIGN(const TensorView view, stepper.value(id));
  if (data.dtype != view.dtype || data.dims != view.dims)
    return invalid(fmt::format("edit: found {}{}; expected {}{}", dtypeName(data.dtype), dimsText(data.dims),
                               dtypeName(view.dtype), dimsText(view.dims)));
  if (!stepper.inStep() && !isState(stepper, id))
    return invalid(
        fmt::format("value '{}': the next step computes it anew, or takes it from its batch; expected a parameter "
                    "or another state between two steps, else a place in the step behind what makes it",
                    stepper.graph().value(id).name));
  return stepper.write(id, data);
}

Status editFromFile(Stepper& stepper, ValueId id, const std::filesystem::path& path) {
  SS_ASSIGN(const Tensor present, editable(stepper, id));
  SS_ASSIGN(const Tensor file, readArray(path));
  const std::string what = arrayName(path);
  SS_TRY(sameShape(what, file.view(), present.view()));
  SS_ASSIGN(const Tensor contents, convertExactly(what, file.view(), present.dtype()));
  return editData(stepper, id, contents.view());
}

Result<snapshot::ComparisonResult> compareWithFile(const Stepper& stepper, ValueId id, const std::filesystem::path& path) {
  SS_ASSIGN(const TensorView view, stepper.value(id));
  SS_ASSIGN(const Tensor file, readArray(path));
  SS_TRY(sameShape(arrayName(path), file.view(), view));
  return compareTensors(stepper.graph().value(id).name, view, file.view());
}

Result<snapshot::ComparisonResult> compareWithValue(const Stepper& stepper, ValueId id, ValueId other) {
  SS_ASSIGN(const TensorView view, stepper.value(id));
  SS_ASSIGN(const TensorView beside, stepper.value(other));
  SS_TRY(sameShape(fmt::format("value '{}'", stepper.graph().value(other).name), beside, view));
  return compareTensors(stepper.graph().value(id).name, view, beside);
}

snapshot::RowLosses rowLossesNow(const Stepper& stepper) {
  snapshot::RowLosses losses;
  const ValueId loss = stepper.step().loss;
  if (!loss) {
    losses.set_instruction(-1);
    losses.set_unavailable("there is no loss");
    return losses;
  }
  const auto instruction = [&](NodeId node) { return stepper.plan().instructionOf(node); };
  losses = rowLosses(
      stepper.graph(), loss, [&](ValueId id) { return stepper.value(id); }, instruction);
  losses.set_step(stepper.shownStep());
  return losses;
}

}  // namespace stepscope
