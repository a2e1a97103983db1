// Looks after collectives that run on the streams of a device. The host puts them there and goes on, and where it waits for
// the device it waits without an end. So a thread of its own asks all the time whether the library tells of an error,
// whether a rank is gone and whether they take too long, and makes them give up.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "engine/comm/transport.h"
#include "kernels/device_ranks.h"

namespace stepscope {

class DeviceWatch {
 public:
  // `transport` and `giveUpAt` (Communicator::giveUpAt) must outlive it.
  DeviceWatch(std::unique_ptr<DeviceRanks> ranks, const Transport& transport, const std::atomic<std::int64_t>& giveUpAt,
              std::int64_t timeoutNs);
  ~DeviceWatch();
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  DeviceRanks& ranks() { return *ranks_; }
  // One is about to be put on a stream: as people know it.
  void begins(const std::string& collective);
  // The device has been waited for, so that none runs any more. Error, kept from then on: why they were given up. `culprit`:
  // the rank that is gone; unchanged where none is.
  Status ended(int* culprit);
  // They were given up: ended() says why. The host may be waiting for other ranks meanwhile, which come no more.
  bool gaveUp();
  // They give up: this rank has failed.
  void giveUp();

 private:
  void run();
  std::optional<Error> look();

  const std::unique_ptr<DeviceRanks> ranks_;
  const Transport& transport_;
  const std::atomic<std::int64_t>& giveUpAt_;
  const std::int64_t timeoutNs_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string newest_;        // that was put there
  bool runs_ = false;         // something may run
  std::int64_t sinceNs_ = 0;  // when the newest was put there
  std::optional<Error> error_;
  int culprit_ = -1;
  bool ends_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace stepscope
