#include "engine/plugin/red_zones.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace stepscope {
namespace {

constexpr std::size_t kZone = 256, kAlignment = 64;
constexpr std::byte kPattern{0xA5}, kUnwritten{0xFF};

std::size_t bytesOf(const OperandSpec& operand) {
  return operand.present() ? static_cast<std::size_t>(elementCount(operand.dims)) * dtypeSize(operand.dtype) : 0;
}

}  // namespace

RedZones::RedZones(const KernelSpec& spec, std::uint64_t scratch) : inputs_(spec.inputs.size()) {
  const auto add = [&](std::string name, std::size_t size) {
    parts_.push_back({bytes_ + kZone, size, std::move(name)});
    bytes_ = parts_.back().at + (size + kAlignment - 1) / kAlignment * kAlignment + kZone;
  };
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) add(fmt::format("input {}", i), bytesOf(spec.inputs[i]));
  for (std::size_t o = 0; o < spec.outputs.size(); ++o) add(fmt::format("output {}", o), bytesOf(spec.outputs[o]));
  add("scratch memory", scratch);
}

void* RedZones::fill(std::span<std::byte> workspace, std::vector<ssp_buffer>& buffers, std::size_t inputs) {
  begin_ = workspace.data();
  std::fill_n(begin_, bytes_, kPattern);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    std::byte* const place = begin_ + parts_[i].at;
    if (i >= inputs)
      std::fill_n(place, parts_[i].bytes, kUnwritten);
    else if (parts_[i].bytes > 0)
      std::memcpy(place, buffers[i].data, parts_[i].bytes);
    if (buffers[i].dtype != SSP_UNDEFINED) buffers[i].data = place;
  }
  return parts_.back().bytes == 0 ? nullptr : begin_ + parts_.back().at;
}

std::string RedZones::zoneProblem(const Part& part) const {
  const std::byte* const data = begin_ + part.at;
  const auto other = [](std::byte b) { return b != kPattern; };
  if (const std::byte* found = std::find_if(data + part.bytes, data + part.bytes + kZone, other);
      found != data + part.bytes + kZone)
    return fmt::format("wrote behind {}: at byte {} of {}", part.name, found - data, part.bytes);
  if (const std::byte* found = std::find_if(data - kZone, data, other); found != data)
    return fmt::format("wrote before {}: {} bytes before its begin", part.name, data - found);
  return {};
}

std::string RedZones::check(const KernelCall& call) const {
  for (const Part& part : parts_)
    if (std::string problem = zoneProblem(part); !problem.empty()) return problem;
  for (std::size_t i = 0; i < inputs_; ++i)
    if (parts_[i].bytes > 0 && std::memcmp(begin_ + parts_[i].at, call.inputs[i].data, parts_[i].bytes) != 0)
      return fmt::format("changed {}", parts_[i].name);
  return {};
}

void RedZones::copyOut(const KernelCall& call) const {
  for (std::size_t o = 0; o < call.outputs.size(); ++o)
    if (const Part& part = parts_[inputs_ + o]; part.bytes > 0)
      std::memcpy(call.outputs[o].data, begin_ + part.at, part.bytes);
}

}  // namespace stepscope
