#include "kernels/cuda_device/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>

namespace stepscope::cuda {
namespace {

CuAddress addressOf(const void* place) { return reinterpret_cast<CuAddress>(place); }
CuEvent eventOf(const DeviceEvent& event) { return static_cast<const Event&>(event).event; }

}  // namespace

CudaDevice::CudaDevice(const std::string& name, const Gpu& gpu, CuContext context)
    : gpu_(gpu),
      driver_(*gpu.driver),
      context_(context),
      failures_(driver_, name),
      functions_(driver_),
      compiled_(driver_, gpu.major, gpu.minor),
      libraries_(driver_),
      staging_(driver_),
      complaints_(driver_),
      captured_(driver_),
      kernelFacts_(driver_, gpu.attribute(kCuThreadsOfMultiprocessor)),
      recorder_(driver_, context, gpu.device) {
  facts_.name = name;
  facts_.kernels = "cuda";
  facts_.space = Space::kDevice;
  facts_.immediate = false;
  facts_.memoryBytes = gpu.memoryBytes;
  facts_.flopsPerSecond = gpu.flopsPerSecond();
  facts_.bytesPerSecond = gpu.bytesPerSecond();
}

CudaDevice::~CudaDevice() {
  driver_.contextSet(context_);
  recorder_.drop();
  library_.reset();
  for (CuStream stream : streams_) {
    driver_.streamSynchronize(stream);
    driver_.streamDestroy(stream);
  }
  for (const auto& [address, bytes] : regions_) driver_.free(address);
  lastly_.driver = &driver_;
  lastly_.device = gpu_.device;
}

Status CudaDevice::prepare(const std::vector<GpuCode>& code) {
  SS_TRY(enter());
  if (Status loaded = functions_.load(code); !loaded) return failures_.named(loaded.error());
  return needStreams(1);
}

Status CudaDevice::enter() {
  if (failures_.broken()) return tl::make_unexpected(*failures_.broken());
  return check(driver_.contextSet(context_), "the context of the GPU");
}

Result<DeviceMemory> CudaDevice::allocate(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  SS_TRY(notCapturing("an allocation"));
  if (bytes == 0) return DeviceMemory();
  CuAddress address = 0;
  if (const CuResult result = driver_.allocate(&address, static_cast<std::size_t>(bytes)); result != kCuSuccess) {
    std::size_t free = 0, total = 0;
    if (result != kCuOutOfMemory || driver_.memoryInfo(&free, &total) != kCuSuccess)
      return failures_.failed(result, fmt::format("allocation of {} bytes", bytes));
    return fail(ErrorCode::kOutOfMemory,
                fmt::format("device '{}': allocation of {} bytes: {} of {} bytes are free; expected "
                            "that much memory on the GPU",
                            facts_.name, bytes, free, total));
  }
  const std::string what = "filling new memory with zeros";
  Status zeroed = check(driver_.fill(address, 0, static_cast<std::size_t>(bytes), streams_[0]), what);
  if (zeroed) zeroed = check(driver_.streamSynchronize(streams_[0]), what);
  if (!zeroed) {
    driver_.free(address);
    return tl::make_unexpected(std::move(zeroed).error());
  }
  regions_[address] = bytes;
  return DeviceMemory(this, reinterpret_cast<std::byte*>(address), bytes);
}

std::int64_t CudaDevice::roomBytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t free = 0, total = 0;
  if (failures_.broken() || driver_.contextSet(context_) != kCuSuccess || driver_.memoryInfo(&free, &total) != kCuSuccess)
    return 0;
  auto room = static_cast<std::int64_t>(free);
  for (const auto& [address, bytes] : regions_) room += bytes;
  return std::max<std::int64_t>(room, 1);  // nothing at all is known too
}

Status CudaDevice::copy(void* to, const void* from, std::int64_t bytes, StreamId stream) {
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  if (bytes == 0) return {};
  SS_ASSIGN(CuStream on, streamOf(stream));
  const bool target = isOwn(to), source = isOwn(from);
  if (!target || !source) SS_TRY(notCapturing("a copy from or to the host"));
  CuResult result = kCuSuccess;
  recorder_.begin(on, stream,
                  {target == source ? ActivityKind::kCopyWithin
                   : target         ? ActivityKind::kCopyIn
                                    : ActivityKind::kCopyOut,
                   bytes, nullptr});
  if (target && source)
    result = driver_.copyWithin(addressOf(to), addressOf(from), static_cast<std::size_t>(bytes), on);
  else if (target)
    result = staging_.toDevice(addressOf(to), from, bytes, on);
  else if (source)
    result = staging_.toHost(to, addressOf(from), bytes, on);
  else
    result = staging_.withinHost(to, from, bytes, on);
  recorder_.end(on);
  if (result == kCuSuccess) return {};
  return failures_.failed(result, fmt::format("copy of {} bytes from {} to {}", bytes, source ? "the GPU" : "the host",
                                              target ? "the GPU" : "the host"));
}

Status CudaDevice::fill(void* to, std::uint8_t value, std::int64_t bytes, StreamId stream) {
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  if (bytes == 0) return {};
  SS_ASSIGN(CuStream on, streamOf(stream));
  recorder_.begin(on, stream, {ActivityKind::kFill, bytes, nullptr});
  const CuResult result = driver_.fill(addressOf(to), value, static_cast<std::size_t>(bytes), on);
  recorder_.end(on);
  if (result == kCuSuccess) return {};
  return failures_.failed(result, fmt::format("fill of {} bytes", bytes));
}

Status CudaDevice::needStreams(int count) {
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  while (streams_.size() < static_cast<std::size_t>(count)) {
    CuStream stream = nullptr;
    SS_TRY(check(driver_.streamCreate(&stream, kCuNonBlocking), "a new stream"));
    streams_.push_back(stream);
  }
  return {};
}

Result<std::unique_ptr<DeviceEvent>> CudaDevice::makeEvent() {
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  auto made = std::make_unique<Event>(*this);
  SS_TRY(check(driver_.eventCreate(&made->event, kCuNoTiming), "a new event"));
  return std::unique_ptr<DeviceEvent>(std::move(made));
}

Status CudaDevice::record(DeviceEvent& event, StreamId stream) {
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  SS_ASSIGN(CuStream on, streamOf(stream));
  return check(driver_.eventRecord(eventOf(event), on), "recording an event");
}

Status CudaDevice::wait(StreamId stream, const DeviceEvent& event) {
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  SS_ASSIGN(CuStream on, streamOf(stream));
  recorder_.begin(on, stream, {ActivityKind::kStreamWait});
  const CuResult result = driver_.streamWait(on, eventOf(event), 0);
  recorder_.end(on);
  return check(result, "waiting for an event");
}

Result<bool> CudaDevice::reached(const DeviceEvent& event) const {
  const std::lock_guard lock(mutex_);
  auto& self = const_cast<CudaDevice&>(*this);  // an error that stays is remembered
  SS_TRY(self.enter());
  const CuResult result = driver_.eventQuery(eventOf(event));
  if (result == kCuNotReady) return false;
  SS_TRY(self.check(result, "asking for an event"));
  return true;
}

Status CudaDevice::synchronise(const DeviceEvent& event) {
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  SS_TRY(notCapturing("a wait of the host"));
  recorder_.begin(nullptr, kNoStream, {ActivityKind::kHostWait});
  const CuResult result = driver_.eventSynchronize(eventOf(event));
  recorder_.end(nullptr);
  SS_TRY(check(result, "waiting for the GPU"));
  return answer(false);
}

Status CudaDevice::synchronise() {
  const std::lock_guard lock(mutex_);
  SS_TRY(enter());
  SS_TRY(notCapturing("a wait of the host"));
  return finish();
}

std::optional<Error> CudaDevice::lost() const {
  const std::lock_guard lock(mutex_);
  return failures_.broken();
}

void CudaDevice::dropEvent(CuEvent event) {
  const std::lock_guard lock(mutex_);
  driver_.contextSet(context_);
  driver_.eventDestroy(event);
}

Status CudaDevice::finish() {
  for (std::size_t i = 0; i < streams_.size(); ++i) SS_TRY(check(waitFor(i), "waiting for the GPU"));
  return answer(true);
}

CuResult CudaDevice::waitFor(std::size_t stream) {
  recorder_.begin(streams_[stream], static_cast<StreamId>(stream), {ActivityKind::kHostWait});
  const CuResult result = driver_.streamSynchronize(streams_[stream]);
  recorder_.end(streams_[stream]);
  return result;
}

Result<CuStream> CudaDevice::streamOf(StreamId stream) const {
  if (stream >= 0 && static_cast<std::size_t>(stream) < streams_.size()) return streams_[static_cast<std::size_t>(stream)];
  return fail(ErrorCode::kInternal,
              fmt::format("device '{}': stream {}; expected one of {}", facts_.name, stream, streams_.size()));
}

bool CudaDevice::isOwn(const void* place) const {
  const CuAddress address = addressOf(place);
  auto it = regions_.upper_bound(address);
  if (it == regions_.begin()) return false;
  --it;
  return address - it->first <= static_cast<CuAddress>(it->second);
}

void CudaDevice::free(std::byte* data, std::int64_t) noexcept {
  const std::lock_guard lock(mutex_);
  driver_.contextSet(context_);
  for (std::size_t i = 0; i < streams_.size(); ++i) waitFor(i);  // work that may still use it
  driver_.free(addressOf(data));
  regions_.erase(addressOf(data));
}

Event::~Event() {
  if (event) owner.dropEvent(event);
}

}  // namespace stepscope::cuda
