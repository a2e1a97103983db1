#include "engine/plugin/reader_bridge.h"

#include <fmt/format.h>

#include "engine/plugin/misuse.h"
#include "engine/plugin/plugin_registry.h"

namespace stepscope {
namespace {

constexpr std::uint32_t kMostArrays = 4096;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;

struct ReaderCall : ssp_reader_context {
  explicit ReaderCall(const std::string& file) : ssp_reader_context{} {
    size = sizeof(ssp_reader_context);
    path = file.c_str();
    fail = [](ssp_reader_context* c, const char* message) { return static_cast<ReaderCall*>(c)->misuse.fail(message); };
  }
  Misuse misuse;
};

// The type of an array; what is wrong with it is noted.
PluginReader::Array typeOf(const ssp_array& array, std::uint32_t index, Misuse& misuse) {
  const auto type = dtypeFromOnnx(array.dtype);
  if (array.size != sizeof(ssp_array) || array.name == nullptr || !type || *type == DType::kString ||
      *type == DType::kUndefined || array.rank > 64 || (array.rank > 0 && array.dims == nullptr)) {
    misuse.note(fmt::format("lists array {} without size, name, element type or extents", index), "all of them");
    return {};
  }
  const Dims dims(array.dims, array.dims + array.rank);
  const auto count = checkedElementCount(dims);
  if (!count || *count > kMostBytes / static_cast<std::int64_t>(dtypeSize(*type)))
    misuse.note(fmt::format("lists array '{}' with extents {}", array.name, dimsText(dims)), "extents that fit into memory");
  return {*type, dims, index};
}

}  // namespace

PluginReader::PluginReader(std::shared_ptr<const PluginLibrary> library, const ssp_reader& reader, std::string path)
    : library_(std::move(library)),
      reader_(reader),
      path_(std::move(path)),
      openLabel_(library_->label(fmt::format("open of reader '{}'", reader.name))),
      readLabel_(library_->label(fmt::format("read of reader '{}'", reader.name))),
      closeLabel_(library_->label(fmt::format("close of reader '{}'", reader.name))) {}

PluginReader::~PluginReader() {
  if (!isOpen_) return;
  (void)guarded(closeLabel_, [&]() -> Status {
    reader_.close(instance_);
    return {};
  });
}

Result<std::unique_ptr<PluginReader>> PluginReader::openFor(const TrainOptions& options) {
  std::unique_ptr<PluginReader> none;
  if (options.data.empty()) return none;
  SS_ASSIGN(const auto registry, registryOf(options));
  for (const auto& library : pluginsOf(registry))
    for (std::uint32_t i = 0; i < library->entry().reader_count; ++i) {
      const ssp_reader& reader = *library->entry().readers[i];
      if (!options.data.ends_with(reader.suffix)) continue;
      std::unique_ptr<PluginReader> found(new PluginReader(library, reader, options.data));
      SS_TRY(found->open());
      return found;
    }
  return none;
}

Status PluginReader::open() {
  ReaderCall call(path_);
  ssp_status status = SSP_ERROR;
  SS_TRY(guarded(openLabel_, [&]() -> Status {
    status = reader_.open(&reader_, &call, &instance_);
    return {};
  }));
  isOpen_ = status == SSP_OK;
  if (isOpen_ && (call.entry_count == 0 || call.entry_count > std::uint64_t{1} << 48))
    call.misuse.note(fmt::format("finds {} entries", call.entry_count), "at least one");
  if (isOpen_ && (call.array_count > kMostArrays || (call.array_count > 0 && call.arrays == nullptr)))
    call.misuse.note(fmt::format("lists {} arrays", call.array_count), fmt::format("up to {}", kMostArrays));
  for (std::uint32_t i = 0; isOpen_ && !call.misuse.any() && i < call.array_count; ++i) {
    Array array = typeOf(call.arrays[i], i, call.misuse);
    if (!call.misuse.any() && !arrays_.emplace(call.arrays[i].name, std::move(array)).second)
      call.misuse.note(fmt::format("lists array '{}' twice", call.arrays[i].name), "each once");
  }
  entries_ = static_cast<std::int64_t>(call.entry_count);
  return call.misuse.verdict(openLabel_, status, fmt::format("data '{}'", path_));
}

Result<Tensor> PluginReader::read(std::int64_t entry, const std::string& name) {
  const Array& array = arrays_.at(name);
  Tensor tensor(array.dtype, array.dims);
  ReaderCall call(path_);
  ssp_status status = SSP_ERROR;
  SS_TRY(guarded(readLabel_, [&]() -> Status {
    status = reader_.read(instance_, &call, static_cast<std::uint64_t>(entry), array.index, tensor.data(), tensor.bytes());
    return {};
  }));
  SS_TRY(call.misuse.verdict(readLabel_, status, fmt::format("data '{}'", path_)));
  return tensor;
}

}  // namespace stepscope
