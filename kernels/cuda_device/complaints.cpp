#include "kernels/cuda_device/complaints.h"

#include <new>

namespace stepscope::cuda {

Complaints::~Complaints() {
  if (places_) driver_.freeHost(places_);
}

CuResult Complaints::add(ErrorOf errorOf, gpu::Complained** place) {
  if (!places_) {
    void* pinned = nullptr;
    if (const CuResult result = driver_.allocateHost(&pinned, kPlaces * sizeof(gpu::Complained), kCuHostReachable);
        result != kCuSuccess)
      return result;
    places_ = static_cast<gpu::Complained*>(pinned);
  }
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

}  // namespace stepscope::cuda
