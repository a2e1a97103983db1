// Room on the disk of a project that is kept back for its last words: how the run ended and what is not recorded of it. A
// file without a name beside the project, so that nothing is left of it however the program ends.
#pragma once

#include <string>

namespace stepscope::storage {

class RoomReserve {
 public:
  static constexpr long long kBytes =
      256 << 10;  // two pages of every table that is written then, in the log and in the file

  explicit RoomReserve(std::string project) : project_(std::move(project)) {}
  ~RoomReserve() { give(); }
  RoomReserve(const RoomReserve&) = delete;
  RoomReserve& operator=(const RoomReserve&) = delete;

  void take();  // nothing happens where the disk has not that much, or the folder cannot be written
  void give();  // others can have it now
  bool held() const { return file_ >= 0; }

 private:
  std::string project_;
  int file_ = -1;
};

}  // namespace stepscope::storage
