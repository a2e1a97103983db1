// A data file that a plugin reads, entry by entry.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/build/options.h"
#include "engine/plugin/plugin_library.h"
#include "kernels/tensor.h"

namespace stepscope {

class PluginReader {
 public:
  // For option `data`, where a plugin of the session that the options belong to reads files of that name; else null. The
  // library stays loaded while the reader lives. Errors: kInvalidArgument with what the plugin says of the file; kCorrupt,
  // naming plugin and function, for what is against the contract of the ABI; those of registryOf().
  static Result<std::unique_ptr<PluginReader>> openFor(const TrainOptions& options);
  ~PluginReader();
  PluginReader(const PluginReader&) = delete;
  PluginReader& operator=(const PluginReader&) = delete;

  struct Array {
    DType dtype = DType::kUndefined;
    Dims dims;  // of one entry
    std::uint32_t index = 0;
  };
  const std::map<std::string, Array>& arrays() const { return arrays_; }
  std::int64_t entries() const { return entries_; }  // at least one
  // An array of an entry below entries(). Errors: those of openFor().
  Result<Tensor> read(std::int64_t entry, const std::string& name);

 private:
  PluginReader(std::shared_ptr<const PluginLibrary> library, const ssp_reader& reader, std::string path);
  Status open();

  std::shared_ptr<const PluginLibrary> library_;
  const ssp_reader& reader_;
  std::string path_, openLabel_, readLabel_, closeLabel_;
  void* instance_ = nullptr;
  bool isOpen_ = false;
  std::map<std::string, Array> arrays_;
  std::int64_t entries_ = 0;
};

}  // namespace stepscope
