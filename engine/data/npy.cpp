#include "engine/data/npy.h"

#include <fmt/format.h>
#include <zip.h>

#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "engine/data/file.h"
#include "engine/data/limits.h"
#include "engine/data/npy_header.h"
#include "engine/data/shown_name.h"

namespace stepscope {
namespace {

void normaliseBools(const Tensor& tensor) {
  if (tensor.dtype() != DType::kBool) return;
  auto* bytes = static_cast<std::uint8_t*>(tensor.data());
  for (std::size_t i = 0; i < tensor.bytes(); ++i) bytes[i] = bytes[i] != 0;
}

Tensor finished(Tensor tensor, const NpyHeader& header) {
  normaliseBools(tensor);
  return header.fortranOrder && header.dims.size() > 1 ? fromFortranOrder(tensor) : tensor;
}

using Archive = std::unique_ptr<zip_t, void (*)(zip_t*)>;
using Entry = std::unique_ptr<zip_file_t, int (*)(zip_file_t*)>;

Status readExactly(zip_file_t* entry, void* data, std::size_t bytes, const std::string& where) {
  for (std::size_t done = 0; done < bytes;) {
    const zip_int64_t got = zip_fread(entry, static_cast<char*>(data) + done, bytes - done);
    if (got <= 0) return fail(ErrorCode::kCorrupt, where + ": damaged or truncated entry; expected a complete archive");
    done += static_cast<std::size_t>(got);
  }
  return {};
}

Result<Entry> openEntry(zip_t* archive, zip_uint64_t index, const std::string& where) {
  Entry entry(zip_fopen_index(archive, index, 0), zip_fclose);
  if (!entry)
    return fail(ErrorCode::kCorrupt, where + ": cannot be opened; expected a stored or deflated entry without password");
  return entry;
}

// Leaves `entry` at the first element.
Result<NpyHeader> readHeader(const Entry& entry, const zip_stat_t& stat, const std::string& where) {
  std::vector<std::byte> head(std::min<std::size_t>(kNpyPrefixBytes, stat.size));
  SS_TRY(readExactly(entry.get(), head.data(), head.size(), where));
  SS_ASSIGN(const std::size_t offset, npyDataOffset(head));
  if (offset > stat.size || offset < head.size())
    return fail(ErrorCode::kCorrupt, where + ": truncated header; expected a .npy file of NumPy");
  const std::size_t begun = head.size();
  head.resize(offset);
  SS_TRY(readExactly(entry.get(), head.data() + begun, offset - begun, where));
  SS_ASSIGN(const NpyHeader header, parseNpyHeader(head));
  if (header.dataBytes != stat.size - offset)
    return invalid(fmt::format("{}: {} bytes of elements; expected {} for {}{}", where, stat.size - offset, header.dataBytes,
                               dtypeName(header.dtype), dimsText(header.dims)));
  return header;
}

Result<Tensor> readEntry(zip_t* archive, zip_uint64_t index, const zip_stat_t& stat, const std::string& where) {
  SS_ASSIGN(const Entry entry, openEntry(archive, index, where));
  SS_ASSIGN(const NpyHeader header, readHeader(entry, stat, where));
  Tensor tensor(header.dtype, header.dims);
  SS_TRY(readExactly(entry.get(), tensor.data(), header.dataBytes, where));
  // One more read makes libzip compare the checksum.
  char end = 0;
  if (zip_fread(entry.get(), &end, 1) != 0)
    return fail(ErrorCode::kCorrupt, where + ": checksum or size is wrong; expected an undamaged archive");
  return finished(std::move(tensor), header);
}

Result<NpyHeader> readEntryHeader(zip_t* archive, zip_uint64_t index, const zip_stat_t& stat, const std::string& where) {
  SS_ASSIGN(const Entry entry, openEntry(archive, index, where));
  return readHeader(entry, stat, where);
}

template <typename T>
Result<std::map<std::string, T>> readEntries(zip_t* archive, const std::string& shown,
                                             Result<T> (*readOne)(zip_t*, zip_uint64_t, const zip_stat_t&,
                                                                  const std::string&)) {
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  if (count > limits::kArchiveEntries)
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("{}: {} entries; at most {} are read", shown, count, limits::kArchiveEntries));
  std::map<std::string, T> arrays;
  std::int64_t total = 0;
  for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(count); ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE;
    if (zip_stat_index(archive, i, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded)
      return fail(ErrorCode::kCorrupt, shown + ": an entry without name or size; expected an archive of arrays");
    std::string name = stat.name;
    if (!name.ends_with(".npy")) continue;
    name.resize(name.size() - 4);
    const std::string where = shown + " array '" + shownName(name) + "'";
    if (stat.size > static_cast<zip_uint64_t>(limits::kArchiveBytes - total))
      return fail(
          ErrorCode::kLimitExceeded,
          fmt::format("{}: arrays of more than {} bytes in all; at most that many are read", where, limits::kArchiveBytes));
    total += static_cast<std::int64_t>(stat.size);
    auto array = readOne(archive, i, stat, where);
    if (!array)
      return fail(array.error().code,
                  array.error().message.starts_with(shown) ? array.error().message : where + ": " + array.error().message);
    if (!arrays.emplace(std::move(name), std::move(*array)).second)
      return fail(ErrorCode::kCorrupt, where + ": stored twice; expected every name once");
  }
  return arrays;
}

template <typename T>
Result<std::map<std::string, T>> readArchive(const std::filesystem::path& path,
                                             Result<T> (*readOne)(zip_t*, zip_uint64_t, const zip_stat_t&,
                                                                  const std::string&)) try {
  const std::string shown = "archive '" + shownName(path.filename().string()) + "'";
  std::error_code missing;
  const auto status = std::filesystem::status(path, missing);
  if (!std::filesystem::exists(status)) return fail(ErrorCode::kNotFound, shown + ": no such file; expected a .npz archive");
  if (!std::filesystem::is_regular_file(status)) return invalid(shown + ": not a regular file; expected a .npz archive");
  int code = 0;
  const Archive archive(zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code), zip_discard);
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string text = zip_error_strerror(&error);
    zip_error_fini(&error);
    return fail(code == ZIP_ER_OPEN || code == ZIP_ER_READ ? ErrorCode::kIo : ErrorCode::kCorrupt,
                shown + ": " + text + "; expected a .npz archive");
  }
  return readEntries(archive.get(), shown, readOne);
} catch (const std::bad_alloc&) {
  return fail(ErrorCode::kOutOfMemory, "archive '" + shownName(path.filename().string()) +
                                           "': not enough memory for its arrays; expected smaller ones");
}

}  // namespace

Result<Tensor> readNpy(std::span<const std::byte> bytes) try {
  SS_ASSIGN(const NpyHeader header, parseNpyHeader(bytes));
  if (bytes.size() - header.dataOffset != header.dataBytes)
    return invalid(fmt::format("array file: {} bytes of elements; expected {} for {}{}", bytes.size() - header.dataOffset,
                               header.dataBytes, dtypeName(header.dtype), dimsText(header.dims)));
  Tensor tensor(header.dtype, header.dims);
  if (header.dataBytes > 0) std::memcpy(tensor.data(), bytes.data() + header.dataOffset, header.dataBytes);
  return finished(std::move(tensor), header);
} catch (const std::bad_alloc&) {
  return fail(ErrorCode::kOutOfMemory, "array file: not enough memory for its elements; expected a smaller array");
}

Result<Tensor> readNpyFile(const std::filesystem::path& path) {
  SS_ASSIGN(const auto bytes, readWholeFile(path, limits::kArchiveBytes, "array file"));
  return readNpy(bytes);
}

Status writeNpy(const std::filesystem::path& path, const TensorView& view) {
  if (view.dtype == DType::kBF16) return writeNpy(path, convertTensor(view, DType::kF32).view());
  if (view.dtype == DType::kString || view.dtype == DType::kUndefined)
    return unsupported("array file '" + shownName(path.filename().string()) + "': " + std::string(dtypeName(view.dtype)) +
                       " elements; expected numbers or bool");
  AtomicFile file(path);
  SS_TRY(file.open());
  const std::string header = npyHeaderText(view.dtype, view.dims);
  SS_TRY(file.append(header.data(), header.size()));
  SS_TRY(file.append(view.data, view.bytes()));
  return file.commit();
}

Result<std::map<std::string, Tensor>> readNpz(const std::filesystem::path& path) { return readArchive(path, readEntry); }

Result<std::map<std::string, NpyHeader>> readNpzHeaders(const std::filesystem::path& path) {
  return readArchive(path, readEntryHeader);
}

}  // namespace stepscope
