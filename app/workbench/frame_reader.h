// SPDX-License-Identifier: GPL-3.0-or-later
// Cuts a byte stream into the worker protocol's messages: uint32 little-endian length, then that many bytes.
#pragma once

#include <QByteArray>
#include <cstdint>
#include <optional>

namespace stepscope {

constexpr std::uint32_t kMaxFrameBytes = 1u << 30;

class FrameReader {
 public:
  void append(const QByteArray& bytes) { buffer_.append(bytes); }

  // The next whole message; nullopt while there is none. After a length above kMaxFrameBytes bad() is true for good.
  std::optional<QByteArray> next();
  bool bad() const { return bad_; }
  std::uint32_t badLength() const { return badLength_; }
  qsizetype pending() const { return buffer_.size() - at_; }
  void clear();

  static QByteArray frame(const std::string& message);

 private:
  QByteArray buffer_;
  qsizetype at_ = 0;
  bool bad_ = false;
  std::uint32_t badLength_ = 0;
};

}  // namespace stepscope
