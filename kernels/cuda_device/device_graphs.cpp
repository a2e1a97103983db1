// Graphs of the device `cuda`: what is put on its streams is captured, with complaints of their own.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/cuda_device/cuda_device.h"

namespace stepscope::cuda {

Status CudaDevice::beginGraph(const std::byte* key) {
  mutex_.lock();  // until endGraph()
  const Status begun = beginCapture();
  if (!begun) {
    mutex_.unlock();
    return begun;
  }
  gpu::recordedKey = key;
  return {};
}

Result<std::unique_ptr<DeviceGraph>> CudaDevice::endGraph() {
  gpu::recordedKey = nullptr;
  Status wrong = std::exchange(cannotCapture_, Status());
  std::unique_ptr<Graph> made = std::move(capturing_);
  const CuResult ended = captured_.end(streams_, &made->made);
  if (wrong) wrong = check(ended, "a graph");
  mutex_.unlock();
  if (!wrong) return tl::make_unexpected(std::move(wrong).error());
  return std::unique_ptr<DeviceGraph>(std::move(made));
}

Status CudaDevice::replay(DeviceGraph& graph) {
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  auto& own = static_cast<Graph&>(graph);
  if (std::ranges::find(launched_, &own) == launched_.end()) launched_.push_back(&own);
  const std::string what = fmt::format("a graph of {} operations", own.made.operations);
  failures_.notePut(what);
  return check(captured_.launch(own.made.executable, streams_), what);
}

Status CudaDevice::beginCapture() {
  SS_TRY(enter());
  SS_TRY(notCapturing("another graph"));
  auto graph = std::make_unique<Graph>(*this, driver_);
  SS_TRY(check(graph->complaints.prepare(), "memory for complaints of kernels"));
  SS_TRY(check(captured_.begin(streams_), "the capture of a graph"));
  capturing_ = std::move(graph);
  return {};
}

Status CudaDevice::notCapturing(const char* what) {
  if (!capturing_) return {};
  Status wrong =
      fail(ErrorCode::kUnsupported,
           fmt::format("device '{}': {} while a graph is recorded; expected work of the device alone", facts_.name, what));
  if (cannotCapture_) cannotCapture_ = wrong;
  return wrong;
}

void CudaDevice::dropGraph(const Graph& graph) {
  const std::lock_guard lock(mutex_);
  driver_.contextSet(context_);
  std::erase(launched_, &graph);
  if (!graph.made.executable) return;
  for (CuStream stream : streams_) driver_.streamSynchronize(stream);  // it may be running
  driver_.graphExecDestroy(graph.made.executable);
}

Graph::~Graph() { owner.dropGraph(*this); }

}  // namespace stepscope::cuda
