#include "storage/room_reserve.h"

#include <fcntl.h>
#include <unistd.h>

namespace stepscope::storage {

void RoomReserve::take() {
  if (held()) return;
  const std::string name = project_ + "-room";
  const int file = open(name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) return;
  unlink(name.c_str());
  if (posix_fallocate(file, 0, kBytes) == 0)
    file_ = file;
  else
    close(file);
}

void RoomReserve::give() {
  if (held()) close(file_);
  file_ = -1;
}

}  // namespace stepscope::storage
