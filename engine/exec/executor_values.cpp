#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/exec/executor.h"
#include "kernels/index.h"

namespace stepscope {
std::span<std::byte> Executor::arenaMemory(int buffer) const {
  const Buffer& b = plan_.buffers[at(buffer)];
  const bool own = b.space == plan_.space;
  if (b.home != Home::kArena || b.shares >= 0 || b.bytes == 0 || (own && !device_.onHost())) return {};
  return {(own ? arena_ : hostArena_).data() + plan_.offsets[at(buffer)], static_cast<std::size_t>(b.bytes)};
}

TensorView Executor::viewOf(int buffer) const {
  if (buffer < 0) return {};
  const Buffer& b = plan_.buffers[at(buffer)];
  const ValueType& type = graph_.value(b.value).type;
  TensorView view;
  view.dtype = type.dtype;
  const Buffer& root = plan_.buffers[at(plan_.root(buffer))];
  if (type.shape) view.dims = knownDims(*type.shape).value_or(Dims{});
  switch (root.home) {
    case Home::kArena: view.data = (b.space == plan_.space ? arena_ : hostArena_).data() + plan_.offsets[at(buffer)]; break;
    case Home::kState: {
      const Tensor tensor = state_(root.value);
      view.data = tensor.data();
      if (b.value == root.value) view.dims = tensor.dims();
      break;
    }
    case Home::kConstant: {
      const auto own = constants_.find(plan_.root(buffer));
      const Tensor& tensor = own != constants_.end() ? own->second : *graph_.value(root.value).data;
      view.data = tensor.data();
      if (b.value == root.value) view.dims = tensor.dims();
      break;
    }
    case Home::kInput: view.data = inputs_.at(plan_.root(buffer)).data(); break;
    case Home::kDynamic: {
      const auto made = dynamic_.find(plan_.root(buffer));
      return made != dynamic_.end() ? made->second.view() : TensorView();
    }
  }
  return view;
}

TensorView Executor::view(ValueId id) const {
  if (!id || at(id) >= plan_.bufferOfValue.size() || plan_.bufferOfValue[at(id)] < 0) return {};
  const int index = plan_.bufferOfValue[at(id)];
  TensorView view = viewOf(index);
  const Layout layout = plan_.buffers[at(index)].layout;
  if (layout == Layout::kPlain || view.data == nullptr || plan_.buffers[at(index)].space == Space::kDevice) return view;
  Tensor& copy = logical_[index];
  if (!copy.valid()) copy = Tensor(view.dtype, view.dims);
  // Every time: stepping back restores memory behind our back.
  reorderLayout(view.data, layout, copy.data(), Layout::kPlain, view.dtype, view.dims);
  view.data = copy.data();
  return view;
}

TensorView Executor::stored(ValueId id) const {
  return id && at(id) < plan_.bufferOfValue.size() ? viewOf(plan_.bufferOfValue[at(id)]) : TensorView{};
}

Result<Tensor> Executor::read(ValueId id) const {
  const int index = id && at(id) < plan_.bufferOfValue.size() ? plan_.bufferOfValue[at(id)] : -1;
  const TensorView found = viewOf(index);
  if (!found.present()) {
    const bool known = id && at(id) < graph_.valueCapacity();
    // A constant that the kernels took when they were made has no buffer (the gradient of a loss that is linear).
    // Folding puts another value of the same name in its place.
    const ValueId folded = known ? graph_.findValue(graph_.value(id).name) : ValueId{};
    if (folded && graph_.value(folded).role == ValueRole::kConstant && graph_.value(folded).data)
      return *graph_.value(folded).data;
    return fail(ErrorCode::kNotFound,
                fmt::format("value '{}': it has no memory now", known ? graph_.value(id).name.view() : ""));
  }
  const Buffer& buffer = plan_.buffers[at(index)];
  if (buffer.space == Space::kHost) return Tensor(found.dtype, found.dims, nullptr, view(id).data);
  SS_ASSIGN(const Tensor there, readTensor(device_, found));
  Tensor& copy = logical_[index];
  if (!copy.valid()) copy = Tensor(found.dtype, found.dims);
  reorderLayout(there.data(), buffer.layout, copy.data(), Layout::kPlain, found.dtype, found.dims);
  return copy;
}

Status Executor::write(ValueId id, const TensorView& contents, int position) {
  const int index = id && at(id) < plan_.bufferOfValue.size() ? plan_.bufferOfValue[at(id)] : -1;
  const TensorView target = viewOf(index);
  if (!target.data || target.dtype != contents.dtype || target.bytes() != contents.bytes())
    return invalid(fmt::format("value '{}': it has no memory now", id ? graph_.value(id).name.view() : ""));
  if (contents.bytes() == 0) return {};
  SS_TRY(writeBuffer(index, contents));
  const int copy = copyInstructionOf_.empty() ? -1 : copyInstructionOf_[at(id)];
  if (copy < 0 || copy >= position) return {};
  const int made = plan_.instructions[at(copy)].outputs[0];
  return plan_.buffers[at(plan_.root(made))].last >= position ? writeBuffer(made, contents) : Status();
}

Status Executor::writeBuffer(int buffer, const TensorView& contents) {
  const Buffer& b = plan_.buffers[at(buffer)];
  const TensorView target = viewOf(buffer);
  if (b.space == Space::kHost) {
    reorderLayout(contents.data, Layout::kPlain, target.data, b.layout, target.dtype, target.dims);
    return {};
  }
  if (b.layout == Layout::kPlain) return writeTensor(device_, target, contents);
  const Tensor laidOut(target.dtype, target.dims);
  reorderLayout(contents.data, Layout::kPlain, laidOut.data(), b.layout, target.dtype, target.dims);
  return writeTensor(device_, target, laidOut.view());
}

std::string Executor::unavailable(ValueId id, int position) const {
  if (!id || at(id) >= plan_.bufferOfValue.size() || plan_.bufferOfValue[at(id)] < 0)
    return "the plan does not compute it: folded, fused or not needed for the loss";
  const int index = plan_.bufferOfValue[at(id)];
  const Value& value = graph_.value(id);
  if (value.role != ValueRole::kNodeOutput) return {};
  const int producer = plan_.instructionOf(value.producer);
  if (position <= producer) return fmt::format("not computed yet: instruction {} makes it", producer);
  if (!ranUpdate_ && plan_.instructions[at(producer)].updateEntry)
    return "not computed: it belongs to the update, which runs at the end of a round of accumulation";
  if (!conditionsHold(producer)) return "its branch of If did not run";
  if (overwritten_.empty()) overwritten_ = overwritten(plan_);
  const Overwritten& lost = overwritten_[at(index)];
  if (lost.instruction < 0 || lost.instruction >= position) return {};
  const Buffer& by = plan_.buffers[at(lost.by)];
  if (by.bufferClass == BufferClass::kWorkspace)
    return fmt::format("its memory was reused as workspace by instruction {}; pin it to keep it", lost.instruction);
  return fmt::format("its memory was reused by '{}' at instruction {}; pin it to keep it", by.name, lost.instruction);
}

Status Executor::setInput(ValueId id, const TensorView& view) {
  const int buffer = plan_.bufferOfValue[at(id)];
  if (buffer < 0) return {};  // the plan does not read this input
  const Tensor& target = inputs_.at(buffer);
  if (view.dtype != target.dtype() || view.dims != target.dims())
    return invalid(fmt::format("input '{}': found {}{}; expected {}{}", plan_.buffers[at(buffer)].name,
                               dtypeName(view.dtype), dimsText(view.dims), dtypeName(target.dtype()),
                               dimsText(target.dims())));
  if (view.dtype == DType::kString)
    std::copy(view.as<std::string>().begin(), view.as<std::string>().end(), target.as<std::string>().begin());
  else if (target.bytes() > 0)
    std::memcpy(target.data(), view.data, target.bytes());
  return {};
}

bool Executor::writtenMemory(int instruction, std::vector<std::span<std::byte>>& memory) const {
  memory.clear();
  if (plan_.instructions[at(instruction)].view) return true;
  if (plan_.instructions[at(instruction)].dynamic) return false;
  const Bound& bound = instructions_[at(instruction)];
  for (const TensorView& output : bound.outputs()) {
    if (!output.present()) continue;
    if (output.dtype == DType::kString) return false;
    memory.emplace_back(static_cast<std::byte*>(output.data), output.data ? output.bytes() : 0);
  }
  if (!bound.workspace.empty()) memory.push_back(bound.workspace);
  return true;
}

bool Executor::conditionsHold(int instruction) const {
  for (const auto& [condition, expected] : instructions_[at(instruction)].predicates)
    if (*condition != expected) return false;
  return true;
}

}  // namespace stepscope
