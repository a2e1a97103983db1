// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/workbench/frame_reader.h"

#include <QtEndian>

namespace stepscope {

std::optional<QByteArray> FrameReader::next() {
  if (bad_ || buffer_.size() - at_ < 4) return std::nullopt;
  const auto length = qFromLittleEndian<std::uint32_t>(buffer_.constData() + at_);
  if (length > kMaxFrameBytes) {
    bad_ = true;
    badLength_ = length;
    return std::nullopt;
  }
  if (buffer_.size() - at_ - 4 < static_cast<qsizetype>(length)) {
    if (at_ > 0) {  // what was read is dropped before the buffer grows for the rest
      buffer_.remove(0, at_);
      at_ = 0;
    }
    return std::nullopt;
  }
  QByteArray message = buffer_.mid(at_ + 4, length);
  at_ += 4 + static_cast<qsizetype>(length);
  if (at_ == buffer_.size()) {
    buffer_.clear();
    at_ = 0;
  }
  return message;
}

void FrameReader::clear() { *this = FrameReader(); }

QByteArray FrameReader::frame(const std::string& message) {
  QByteArray out(4, '\0');
  qToLittleEndian(static_cast<std::uint32_t>(message.size()), out.data());
  out.append(message.data(), static_cast<qsizetype>(message.size()));
  return out;
}

}  // namespace stepscope
