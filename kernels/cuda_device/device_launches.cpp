// Kernels of the device `cuda`: what they launch, ask a library for and complain of.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "kernels/cuda_device/cuda_device.h"
#include "kernels/emulated_device.h"

namespace stepscope::cuda {

bool CudaDevice::takes(const KernelSpec& spec) const { return cudaTakes(spec); }

Status CudaDevice::launch(Kernel& kernel, const KernelCall& call) {
  gpu::DirectLaunches* const before = std::exchange(gpu::directLaunches, this);
  gpu::LibraryProducts* const products = std::exchange(gpu::libraryProducts, this);
  gpu::GeneratedKernels* const compiler = std::exchange(gpu::generatedKernels, this);
  LibraryLaunches* const libraries = std::exchange(libraryLaunches, this);
  Status status = runKernel(kernel, call);
  gpu::directLaunches = before;
  gpu::libraryProducts = products;
  gpu::generatedKernels = compiler;
  libraryLaunches = libraries;
  return status;
}

Status CudaDevice::launch(const gpu::DirectLaunch& launch) {
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  const auto function = functions_.find(launch.tag);
  if (!function) return failures_.named(function.error());
  return put(*function, launch.name, launch.blocks, launch.threads, launch.stream, launch.parameters.data());
}

Result<bool> CudaDevice::launch(const GeneratedLaunch& launch) {
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  CuFunction function = nullptr;
  // No module is loaded while a graph is captured.
  SS_TRY(check(compiled_.find(launch.prelude, launch.source, !capturing_, &function), "a compiled kernel"));
  if (!function) return false;
  SS_TRY(put(function, launch.name, launch.blocks, launch.threads, launch.stream, launch.parameters.data()));
  return true;
}

std::string CudaDevice::whyNot(const std::shared_ptr<const LibraryCode>& code, const std::string&) const {
  const std::lock_guard lock(mutex_);
  auto& self = const_cast<CudaDevice&>(*this);  // an error that stays is remembered
  if (!self.enter()) return "";                 // launch() tells
  const auto functions = libraries_.of(code, !capturing_);
  return !functions && functions.error().code == ErrorCode::kUnsupported ? functions.error().message : "";
}

Status CudaDevice::launch(const LibraryLaunch& launch) {
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  // No module is loaded while a graph is captured.
  const auto functions = libraries_.of(launch.code, !capturing_);
  if (!functions) return failures_.named(functions.error());
  constexpr std::size_t kMost = 64;
  std::array<void*, kMost> addresses, parameters;
  if (launch.arguments.size() > kMost)
    return fail(ErrorCode::kInternal,
                fmt::format("{}: {} arguments; expected up to {}", launch.code->owner, launch.arguments.size(), kMost));
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const LibraryArgument& argument = launch.arguments[i];
    addresses[i] = argument.address;
    parameters[i] = argument.what ? static_cast<void*>(&addresses[i]) : const_cast<void*>(argument.value);
  }
  const LibraryFunction& function = launch.code->functions[launch.function];
  return put((*functions)[launch.function], function.name.c_str(), launch.blocks, launch.threads, launch.stream,
             parameters.data());
}

Result<void*> CudaDevice::nativeStream(StreamId stream) {
  SS_ASSIGN(CuStream on, streamOf(stream));
  return static_cast<void*>(on);
}

Status CudaDevice::put(CuFunction function, const char* name, std::int64_t blocks, int threads, StreamId stream,
                       void** parameters) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (blocks < 1 || blocks > kMost)
    return fail(ErrorCode::kInternal,
                fmt::format("device '{}': kernel '{}': {} blocks; expected 1 to {}", facts_.name, name, blocks, kMost));
  SS_ASSIGN(CuStream on, streamOf(stream));
  failures_.notePut(name);
  const ActivityKernel* const facts =
      recorder_.isThere() && !capturing_ && activityId != 0 ? &kernelFacts_.of(function, name, blocks, threads) : nullptr;
  recorder_.begin(on, stream, {ActivityKind::kKernel, 0, facts}, !capturing_);
  const CuResult result = driver_.launch(function, static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(threads), 1, 1,
                                         0, on, parameters, nullptr);
  recorder_.end(on);
  if (result == kCuSuccess) return {};
  return failures_.failed(result, fmt::format("kernel '{}', {} blocks of {} threads", name, blocks, threads));
}

Result<bool> CudaDevice::product(const LibraryProduct& product) {
  static const ActivityKernel kByLibrary{"cuBLASLt", 0, 0, 0, 0, 0};
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  SS_ASSIGN(CuStream on, streamOf(product.stream));
  if (!library_->takes(product)) return false;
  failures_.notePut(kByLibrary.name);
  recorder_.begin(on, product.stream, {ActivityKind::kKernel, 0, &kByLibrary}, !capturing_);
  auto put = library_->run(product, on);
  recorder_.end(on);
  if (!put) return failures_.named(put.error());
  return put;
}

Result<void*> CudaDevice::complaint(Complaints::ErrorOf errorOf) {
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  if (capturing_ && capturing_->complaints.full()) SS_TRY(notCapturing("more than a thousand kernels that may complain"));
  if (!capturing_ && complaints_.full()) SS_TRY(finish());
  gpu::Complained* place = nullptr;
  Complaints& complaints = capturing_ ? capturing_->complaints : complaints_;
  SS_TRY(check(complaints.add(std::move(errorOf), &place), "memory for complaints of kernels"));
  return place;
}

Status CudaDevice::answer(bool all) {
  if (auto error = complaints_.collect(all)) return tl::make_unexpected(std::move(*error));
  if (!all) return {};  // a graph may be running, and writes where its complaints are
  for (Graph* graph : launched_)
    if (auto error = graph->complaints.collectAgain()) return tl::make_unexpected(std::move(*error));
  launched_.clear();
  return {};
}

void CudaDevice::startActivity(ActivityRung highest) {
  const std::lock_guard lock(mutex_);
  if (enter()) recorder_.start(streams_[0], highest);
}

Activity CudaDevice::takeActivity() {
  const std::lock_guard lock(mutex_);
  return enter() ? recorder_.take(streams_[0]) : Activity{};
}

}  // namespace stepscope::cuda
