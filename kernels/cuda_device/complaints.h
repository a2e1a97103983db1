// What kernels found wrong with their operands (gpu::Complained), and the errors that are made of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kernels/cuda/complained.h"
#include "kernels/cuda_device/driver.h"

namespace stepscope::cuda {

class Complaints {
 public:
  using ErrorOf = std::function<Error(std::int64_t position, std::int64_t value)>;

  // The context of `driver` is current wherever a function of this class is called.
  explicit Complaints(const Driver& driver) : driver_(driver) {}
  ~Complaints();
  Complaints(const Complaints&) = delete;
  Complaints& operator=(const Complaints&) = delete;

  // Finds the memory, if it is not there. Of places that a graph has, before it is recorded.
  CuResult prepare();
  // No more places: collect() when everything has run.
  bool full() const { return pending_.size() == kPlaces; }
  // A place of the next launch, in memory that the GPU reaches.
  CuResult add(ErrorOf errorOf, gpu::Complained** place);
  // The first complaint that nobody was told; places are used again once everything has run (`all`).
  std::optional<Error> collect(bool all);
  // The same, once everything has run, for places that belong to the launches of a graph, which uses them again.
  std::optional<Error> collectAgain();

 private:
  static constexpr std::size_t kPlaces = 1024;
  const Driver& driver_;
  gpu::Complained* places_ = nullptr;  // [kPlaces]
  std::vector<ErrorOf> pending_;       // of places_[0], places_[1] …; empty: told
};

}  // namespace stepscope::cuda
