// Values beside files and beside each other, and one step beside itself.
#include <fmt/format.h>

#include "engine/data/npy.h"
#include "engine/data/shown_name.h"
#include "engine/train/compare_tensors.h"
#include "engine/train/row_losses.h"
#include "engine/train/session.h"

namespace stepscope {
namespace {

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

}  // namespace

Status Session::editFromFile(ValueId id, const std::filesystem::path& path) {
  SS_ASSIGN(const Tensor present, editable(id));
  SS_ASSIGN(const Tensor file, readArray(path));
  const std::string what = arrayName(path);
  SS_TRY(sameShape(what, file.view(), present.view()));
  SS_ASSIGN(const Tensor contents, convertExactly(what, file.view(), present.dtype()));
  return editData(id, contents.view());
}

Result<snapshot::ComparisonResult> Session::compareWithFile(ValueId id, const std::filesystem::path& path) const {
  SS_ASSIGN(const TensorView view, value(id));
  SS_ASSIGN(const Tensor file, readArray(path));
  SS_TRY(sameShape(arrayName(path), file.view(), view));
  return compareTensors(variant_->graph.value(id).name, view, file.view());
}

Result<snapshot::ComparisonResult> Session::compareWithValue(ValueId id, ValueId other) const {
  SS_ASSIGN(const TensorView view, value(id));
  SS_ASSIGN(const TensorView beside, value(other));
  SS_TRY(sameShape(fmt::format("value '{}'", variant_->graph.value(other).name), beside, view));
  return compareTensors(variant_->graph.value(id).name, view, beside);
}

snapshot::RowLosses Session::rowLosses() const {
  snapshot::RowLosses losses;
  if (!variant_ || !loss_) {
    losses.set_instruction(-1);
    losses.set_unavailable(variant_ ? "there is no loss" : "nothing was built");
    return losses;
  }
  const auto read = [this](ValueId id) { return value(id); };
  const auto instruction = [this](NodeId node) {
    const auto& instructions = variant_->executor->plan().instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i)
      if (instructions[i].node == node) return static_cast<int>(i);
    return -1;
  };
  losses = stepscope::rowLosses(variant_->graph, loss_, read, instruction);
  losses.set_step(inStep_ ? state_.step : state_.step - 1);
  return losses;
}

Result<snapshot::CompareReply> Session::compareBits() {
  if (!variant_ || !data_) return invalid("compare: nothing was built; build first");
  SS_TRY(abandonStep());
  SS_TRY(applyOptions());
  const StateSnapshot start = state_.copy();
  SS_ASSIGN(const Batch batch, data_->batch(state_.step));
  SS_TRY(useVariantFor(batch));
  batch_ = batch;
  Executor& executor = *variant_->executor;
  const ExecutionPlan& plan = executor.plan();
  // Every value is compared as soon as it is made: buffers are reused later.
  std::vector<Tensor> first(variant_->graph.valueCapacity());
  snapshot::CompareReply reply;
  reply.set_equal(true);
  for (const int round : {0, 1}) {
    SS_TRY(feed(batch));
    Executor::RunOptions options = runOptions();
    options.cancel = &cancelled_;
    options.after = [&](int i) -> Status {
      if (!executor.conditionsHold(i)) return {};  // a branch that did not run made nothing
      for (const int b : plan.instructions[static_cast<std::size_t>(i)].outputs) {
        if (b < 0) continue;
        const ValueId id = plan.buffers[static_cast<std::size_t>(b)].value;
        const TensorView view = executor.view(id);
        if (!view.data) continue;
        if (round == 0) {
          first[static_cast<std::size_t>(id.index)] = Tensor(view.dtype, view.dims, nullptr, view.data).clone();
          continue;
        }
        snapshot::ComparisonResult result =
            compareTensors(variant_->graph.value(id).name, first[static_cast<std::size_t>(id.index)].view(), view);
        if (!result.equal_bits()) reply.set_equal(false);
        *reply.add_values() = std::move(result);
      }
      return {};
    };
    const auto ran = executor.run(0, static_cast<int>(plan.instructions.size()), options);
    state_.restore(start);
    if (!ran) return tl::make_unexpected(ran.error());
  }
  return reply;
}

}  // namespace stepscope
