#include "engine/data/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/data/file.h"
#include "engine/data/limits.h"
#include "engine/data/safetensors_header.h"
#include "engine/data/shown_name.h"

namespace stepscope {
namespace {

constexpr std::size_t kLengthBytes = 8;

// Sorted by place, every range must begin where the one before it ends, and the last must end with the file.
Status checkRanges(const SafetensorsHeader& header, std::uint64_t dataBytes) {
  std::vector<const std::pair<const std::string, SafetensorsEntry>*> sorted;
  for (const auto& entry : header.entries) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::uint64_t at = 0;
  for (const auto* item : sorted) {
    const auto& [name, entry] = *item;
    const auto problem = [&](const std::string& text) {
      return invalid("checkpoint: tensor '" + shownName(name) + "': " + text);
    };
    if (entry.begin != at)
      return problem(
          fmt::format("bytes {}..{}; expected to begin at {}, without holes or overlap", entry.begin, entry.end, at));
    if (entry.end < entry.begin || entry.end > dataBytes)
      return problem(fmt::format("bytes {}..{} of {}; expected a range inside the file", entry.begin, entry.end, dataBytes));
    const auto count = checkedElementCount(entry.dims);
    std::int64_t bytes = 0;
    if (!count || __builtin_mul_overflow(*count, static_cast<std::int64_t>(dtypeSize(entry.dtype)), &bytes))
      return problem("shape " + dimsText(entry.dims) + "; expected a size that fits in memory");
    if (static_cast<std::uint64_t>(bytes) != entry.end - entry.begin)
      return problem(fmt::format("{} bytes; expected {} for {}{}", entry.end - entry.begin, bytes, dtypeName(entry.dtype),
                                 dimsText(entry.dims)));
    at = entry.end;
  }
  if (at != dataBytes)
    return invalid(fmt::format("checkpoint: {} bytes of data; expected the {} of its tensors", dataBytes, at));
  return {};
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace

namespace {

// The length of the header from the first bytes of a file of `size`.
Result<std::size_t> headerLength(std::span<const std::byte> first, std::uint64_t size) {
  if (size < kLengthBytes)
    return fail(ErrorCode::kCorrupt, fmt::format("checkpoint: {} bytes; expected a safetensors file", size));
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= static_cast<std::uint64_t>(first[i]) << (8 * i);
  if (length > static_cast<std::uint64_t>(limits::kSafetensorsHeaderBytes))
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("checkpoint: header of {} bytes; at most {} are read", length, limits::kSafetensorsHeaderBytes));
  if (length > size - kLengthBytes)
    return fail(ErrorCode::kCorrupt,
                fmt::format("checkpoint: header of {} bytes in a file of {}; expected a complete file", length, size));
  return static_cast<std::size_t>(length);
}

void normaliseBools(const TensorView& view) {
  if (view.dtype != DType::kBool) return;
  for (std::uint8_t& byte : view.as<std::uint8_t>()) byte = byte != 0;
}

tl::unexpected<Error> noMemory() {
  return fail(ErrorCode::kOutOfMemory, "checkpoint: not enough memory for its tensors; expected a smaller file");
}

tl::unexpected<Error> naming(const std::filesystem::path& path, Error error) {
  constexpr std::string_view kWhole = "checkpoint: ";
  if (error.message.starts_with(kWhole))
    error.message = fmt::format("checkpoint '{}': {}", shownName(path.string()), error.message.substr(kWhole.size()));
  return tl::make_unexpected(std::move(error));
}

Result<std::pair<SafetensorsHeader, std::int64_t>> readHeader(const InputFile& file) {
  std::array<std::byte, kLengthBytes> first{};
  const auto size = static_cast<std::uint64_t>(file.bytes());
  if (size >= kLengthBytes) SS_TRY(file.read(0, first.data(), first.size()));
  SS_ASSIGN(const std::size_t length, headerLength(first, size));
  std::string json(length, '\0');
  SS_TRY(file.read(kLengthBytes, json.data(), length));
  SS_ASSIGN(SafetensorsHeader header, parseSafetensorsHeader(json));
  SS_TRY(checkRanges(header, size - kLengthBytes - length));
  return std::pair(std::move(header), static_cast<std::int64_t>(kLengthBytes + length));
}

}  // namespace

Result<SafetensorsFile> parseSafetensors(std::span<const std::byte> bytes) try {
  SS_ASSIGN(const std::size_t length, headerLength(bytes, bytes.size()));
  SS_ASSIGN(SafetensorsHeader header,
            parseSafetensorsHeader({reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length}));
  const auto data = bytes.subspan(kLengthBytes + length);
  SS_TRY(checkRanges(header, data.size()));
  SafetensorsFile file;
  file.metadata = std::move(header.metadata);
  for (auto& [name, entry] : header.entries) {
    Tensor tensor(entry.dtype, entry.dims);
    if (entry.end > entry.begin)
      std::memcpy(tensor.data(), data.data() + entry.begin, static_cast<std::size_t>(entry.end - entry.begin));
    normaliseBools(tensor.view());
    file.tensors.emplace(name, std::move(tensor));
  }
  return file;
} catch (const std::bad_alloc&) {
  return noMemory();
}

Result<SafetensorsReader> SafetensorsReader::open(const std::filesystem::path& path) try {
  SS_ASSIGN(InputFile file, InputFile::open(path, limits::kTensorBytes, "checkpoint"));
  auto read = readHeader(file);
  if (!read) return naming(path, std::move(read.error()));
  return SafetensorsReader(std::move(file), std::move(read->first), read->second);
} catch (const std::bad_alloc&) {
  return naming(path, noMemory().value());
}

Status SafetensorsReader::read(const SafetensorsEntry& entry, const TensorView& to) const {
  SS_CHECK(to.dtype == entry.dtype && to.bytes() == entry.end - entry.begin);
  SS_TRY(file_.read(begin_ + static_cast<std::int64_t>(entry.begin), to.data, to.bytes()));
  normaliseBools(to);
  return {};
}

Result<SafetensorsFile> readSafetensors(const std::filesystem::path& path) try {
  SS_ASSIGN(const auto reader, SafetensorsReader::open(path));
  SafetensorsFile file;
  file.metadata = reader.metadata();
  for (const auto& [name, entry] : reader.entries()) {
    Tensor tensor(entry.dtype, entry.dims);
    SS_TRY(reader.read(entry, tensor.view()));
    file.tensors.emplace(name, std::move(tensor));
  }
  return file;
} catch (const std::bad_alloc&) {
  return naming(path, noMemory().value());
}

Status writeSafetensors(const std::filesystem::path& path, const std::map<std::string, TensorView>& tensors,
                        const std::map<std::string, std::string>& metadata, const LateContents& late) {
  std::string header = "{";
  const auto separate = [&] { header += header.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    bool first = true;
    for (const auto& [key, value] : metadata) {
      header += (first ? "" : ",") + quoted(key) + ":" + quoted(value);
      first = false;
    }
    header += "}";
  }
  std::size_t offset = 0;
  for (const auto& [name, view] : tensors) {
    const std::string_view type = safetensorsTypeName(view.dtype);
    if (type.empty())
      return unsupported("checkpoint: tensor '" + shownName(name) + "' of " + std::string(dtypeName(view.dtype)) +
                         "; expected numbers or bool");
    separate();
    std::string shape;
    for (const std::int64_t extent : view.dims) shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    header += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", quoted(name), type, shape,
                          offset, offset + view.bytes());
    offset += view.bytes();
  }
  header += "}";
  header.append((kLengthBytes - header.size() % kLengthBytes) % kLengthBytes, ' ');
  if (header.size() > static_cast<std::size_t>(limits::kSafetensorsHeaderBytes))
    return fail(ErrorCode::kLimitExceeded, fmt::format("checkpoint: header of {} bytes; at most {} are read back",
                                                       header.size(), limits::kSafetensorsHeaderBytes));
  AtomicFile file(path);
  SS_TRY(file.open());
  std::array<char, kLengthBytes> length{};
  for (std::size_t i = 0; i < kLengthBytes; ++i) length[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  SS_TRY(file.append(length.data(), length.size()));
  SS_TRY(file.append(header.data(), header.size()));
  for (const auto& [name, tensor] : tensors) {
    TensorView contents = tensor;
    if (contents.data == nullptr && contents.bytes() > 0) {
      SS_CHECK(late != nullptr);
      SS_ASSIGN(contents, late(name, tensor));
      SS_CHECK(contents.bytes() == tensor.bytes());
    }
    SS_TRY(file.append(contents.data, contents.bytes()));
  }
  return file.commit();
}

}  // namespace stepscope
