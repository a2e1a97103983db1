#include "kernels/cuda_device/complaints.h"

#include <new>

namespace stepscope::cuda {

Complaints::~Complaints() {
  if (places_) driver_.freeHost(places_);
}

CuResult Complaints::prepare() {
  if (places_) return kCuSuccess;
  void* pinned = nullptr;
  const CuResult result = driver_.allocateHost(&pinned, kPlaces * sizeof(gpu::Complained), kCuHostReachable);
  if (result == kCuSuccess) places_ = static_cast<gpu::Complained*>(pinned);
  return result;
}

CuResult Complaints::add(ErrorOf errorOf, gpu::Complained** place) {
  if (const CuResult result = prepare(); result != kCuSuccess) return result;
  *place = new (&places_[pending_.size()]) gpu::Complained();
  pending_.push_back(std::move(errorOf));
  return kCuSuccess;
}

std::optional<Error> Complaints::collect(bool all) {
  std::optional<Error> first;
  for (std::size_t i = 0; i < pending_.size() && !first; ++i) {
    // The GPU writes it: read what is there now.
    const volatile gpu::Complained& place = places_[i];
    if (place.position == gpu::kNoComplaint || !pending_[i]) continue;
    first = pending_[i](static_cast<std::int64_t>(place.position), place.value);
    pending_[i] = nullptr;
  }
  if (all) pending_.clear();
  return first;
}

std::optional<Error> Complaints::collectAgain() {
  std::optional<Error> first;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const volatile gpu::Complained& place = places_[i];
    if (place.position == gpu::kNoComplaint) continue;
    if (!first) first = pending_[i](static_cast<std::int64_t>(place.position), place.value);
    new (&places_[i]) gpu::Complained();
  }
  return first;
}

}  // namespace stepscope::cuda
