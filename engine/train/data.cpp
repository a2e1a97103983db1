#include "engine/train/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/build/step_inputs.h"
#include "engine/plugin/reader_bridge.h"
#include "engine/profile/compare_tensors.h"
#include "engine/train/data_files.h"
#include "engine/train/label_extents.h"
#include "engine/train/synthetic_dims.h"
#include "kernels/random.h"

namespace stepscope {
namespace {

// Arrays of a file: entry k of an array with a leading axis of entries, the whole array otherwise.
class FileSource final : public DataSource {
 public:
  struct Array {
    Tensor tensor;
    bool perStep = false;
  };
  FileSource(std::map<std::string, Array> arrays, std::int64_t entries) : arrays_(std::move(arrays)), entries_(entries) {}
  std::int64_t entries() const override { return entries_; }
  Result<Batch> batch(std::int64_t step) override {
    Batch batch;
    const std::int64_t entry = entries_ > 0 ? step % entries_ : 0;
    batch.label = fmt::format("entry {} of {}", entry, std::max<std::int64_t>(entries_, 1));
    for (const auto& [name, array] : arrays_) {
      if (!array.perStep) {
        batch.arrays[name] = array.tensor;
        continue;
      }
      Dims dims(array.tensor.dims().begin() + 1, array.tensor.dims().end());
      const std::size_t bytes = static_cast<std::size_t>(elementCount(dims)) * dtypeSize(array.tensor.dtype());
      const auto owner = std::make_shared<Tensor>(array.tensor);
      auto* data = static_cast<std::byte*>(array.tensor.data()) + bytes * static_cast<std::size_t>(entry);
      batch.arrays[name] = Tensor(array.tensor.dtype(), std::move(dims), owner, data);
    }
    return batch;
  }

 private:
  std::map<std::string, Array> arrays_;
  std::int64_t entries_;
};

class SyntheticSource final : public DataSource {
 public:
  struct Input {
    std::string name;
    DType dtype;
    Dims dims;
    InputRole role;
    std::int64_t padValue = 0;
    bool padded = false;
    std::int64_t counted = 0;  // of lengths: the extent that they count
  };
  // `extents`: of the inputs that lengths count.
  SyntheticSource(std::vector<Input> inputs, const std::map<std::string, Dims>& extents, std::uint64_t seed, double padding)
      : inputs_(std::move(inputs)), seed_(seed), padding_(padding) {
    for (Input& input : inputs_)
      if (const auto it = extents.find(input.role.counted); it != extents.end() && input.role.axis < it->second.size())
        input.counted = it->second[input.role.axis];
  }
  std::int64_t entries() const override { return 0; }
  Result<Batch> batch(std::int64_t step) override {
    Batch batch;
    batch.label = "synthetic";
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Input& input = inputs_[i];
      Tensor tensor(input.dtype, input.dims);
      // Node numbers of data lie above every node of a graph.
      const RandomKey key{seed_, static_cast<std::uint64_t>(step), 0x80000000u + static_cast<std::uint32_t>(i)};
      const std::int64_t length = input.dims.empty() ? 1 : input.dims.back();
      const auto valid = static_cast<std::int64_t>(std::llround(static_cast<double>(length) * (1 - padding_)));
      for (std::int64_t k = 0; k < tensor.elements(); ++k) {
        const double u = uniform01(key, static_cast<std::uint64_t>(k));
        const bool pad = length > 0 && input.dims.size() >= 2 && k % length >= valid;
        double value = 0;
        switch (input.role.kind) {
          case InputRole::Kind::kTokens:
          case InputRole::Kind::kLabels:
            value = std::floor(u * static_cast<double>(std::max<std::int64_t>(input.role.below, 1)));
            break;
          case InputRole::Kind::kPositions: value = static_cast<double>(k % std::max<std::int64_t>(length, 1)); break;
          case InputRole::Kind::kMask: value = pad ? 0 : 1; break;
          case InputRole::Kind::kLengths:
            value = std::max(1.0, std::round(static_cast<double>(input.counted) * (1 - padding_)));
            break;
          case InputRole::Kind::kData:
            value = isFloating(input.dtype) ? normal01(key, static_cast<std::uint64_t>(k)) : std::floor(u * 2);
            break;
        }
        if (pad && input.padded) value = static_cast<double>(input.padValue);
        storeElement(tensor.view(), k, value);
      }
      batch.arrays[input.name] = std::move(tensor);
    }
    return batch;
  }

 private:
  std::vector<Input> inputs_;
  std::uint64_t seed_;
  double padding_;
};

bool losslessTo(DType from, DType to) {
  if (isInteger(from) && (to == DType::kI64 || to == DType::kI32)) return true;
  if (from == DType::kF64 && to == DType::kF32) return true;
  if (isLow(from) && (to == DType::kF32 || to == DType::kF64)) return true;
  if (from == DType::kF32 && to == DType::kF64) return true;
  return (from == DType::kBool && isInteger(to)) || (from == DType::kU8 && to == DType::kBool);
}

// Integers that the other type lacks exist.
bool mayNotFit(DType from, DType to) {
  if (!isInteger(from) || !isInteger(to)) return false;
  return dtypeSize(from) > dtypeSize(to) || (dtypeSize(from) == dtypeSize(to) && isUnsigned(from) != isUnsigned(to));
}

// A file in float16 or bfloat16 is fed from arrays of more digits, which NumPy has.
bool isRounded(DType from, DType to) { return isFloating(from) && from != to && isLow(to); }

Result<Tensor> rounded(const std::string& what, const TensorView& contents, DType dtype) {
  Tensor out = convertTensor(contents, dtype);
  for (std::int64_t i = 0; i < out.elements(); ++i)
    if (std::isinf(elementAsDouble(out.view(), i)) && std::isfinite(elementAsDouble(contents, i)))
      return invalid(fmt::format("{}: element {} is {:g}, which is infinite in {}; expected numbers that it has", what, i,
                                 elementAsDouble(contents, i), dtypeName(dtype)));
  return out;
}

// The extents of an array that feeds an input; true when its first axis holds entries.
Result<bool> fitsInput(const std::string& data, const Value& input, const ArrayType& array) {
  if (array.dtype != input.type.dtype && !losslessTo(array.dtype, input.type.dtype) &&
      !isRounded(array.dtype, input.type.dtype))
    return invalid(fmt::format("data '{}': array '{}' is {}; expected {}", data, input.name, dtypeName(array.dtype),
                               dtypeName(input.type.dtype)));
  if (!input.type.shape) return false;
  const std::size_t rank = input.type.shape->size();
  const bool perStep = array.dims.size() == rank + 1;
  if (!perStep && array.dims.size() != rank)
    return invalid(fmt::format("data '{}': array '{}' has shape {}; expected {} or that with a leading axis of steps", data,
                               input.name, dimsText(array.dims), input.type.text()));
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const Dim& expected = (*input.type.shape)[axis];
    const std::int64_t found = array.dims[axis + (perStep ? 1 : 0)];
    if (expected.known() && expected.value() != found)
      return invalid(fmt::format("data '{}': array '{}' has shape {}; expected {}{}", data, input.name, dimsText(array.dims),
                                 perStep ? "one entry per step of " : "", input.type.text()));
  }
  return perStep;
}

// In the type of the input that it feeds.
Result<Tensor> inTypeOf(DType wanted, const std::string& what, const Tensor& tensor) {
  if (mayNotFit(tensor.dtype(), wanted)) return convertExactly(what, tensor.view(), wanted);
  if (isRounded(tensor.dtype(), wanted)) return rounded(what, tensor.view(), wanted);
  return tensor.dtype() == wanted ? tensor : convertTensor(tensor.view(), wanted);
}

// Entries that a plugin reads, one after the other.
class ReaderSource final : public DataSource {
 public:
  ReaderSource(std::unique_ptr<PluginReader> reader, std::string data, std::map<std::string, DType> wanted)
      : reader_(std::move(reader)), data_(std::move(data)), wanted_(std::move(wanted)) {}
  std::int64_t entries() const override { return reader_->entries(); }
  Result<Batch> batch(std::int64_t step) override {
    Batch batch;
    const std::int64_t entry = step % reader_->entries();
    batch.label = fmt::format("entry {} of {}", entry, reader_->entries());
    for (const auto& [name, wanted] : wanted_) {
      SS_ASSIGN(const Tensor tensor, reader_->read(entry, name));
      SS_ASSIGN(batch.arrays[name], inTypeOf(wanted, fmt::format("data '{}': array '{}'", data_, name), tensor));
    }
    return batch;
  }

 private:
  std::unique_ptr<PluginReader> reader_;
  std::string data_;
  std::map<std::string, DType> wanted_;  // by input
};

Result<std::unique_ptr<DataSource>> openReader(const Graph& graph, const TrainOptions& options,
                                               std::unique_ptr<PluginReader> reader) {
  std::map<std::string, ArrayType> types;
  for (const auto& [name, array] : reader->arrays()) {
    Dims dims{reader->entries()};
    dims.insert(dims.end(), array.dims.begin(), array.dims.end());
    types[name] = {array.dtype, std::move(dims)};
  }
  SS_ASSIGN(const DataLayout layout, layOut(graph, options.data, types));
  std::map<std::string, DType> wanted;
  for (const auto& [name, perStep] : layout.perStep) {
    const ValueType& type = graph.value(graph.findValue(name)).type;
    if (!perStep && type.shape)
      return invalid(fmt::format("data '{}': array '{}' has extents {} in every entry; expected {}", options.data, name,
                                 dimsText(reader->arrays().at(name).dims), type.text()));
    wanted[name] = type.dtype;
  }
  return std::make_unique<ReaderSource>(std::move(reader), options.data, std::move(wanted));
}

Result<std::unique_ptr<DataSource>> openFiles(const Graph& graph, const TrainOptions& options) {
  SS_ASSIGN(auto reader, PluginReader::openFor(options));
  if (reader) return openReader(graph, options, std::move(reader));
  SS_ASSIGN(auto files, readDataFiles(options.data, [&] {
              std::vector<std::string> names;
              for (const ValueId id : graph.inputs())
                if (!isStepInput(graph.value(id).name)) names.push_back(graph.value(id).name);
              return names;
            }()));
  std::map<std::string, ArrayType> types;
  for (const auto& [name, tensor] : files) types[name] = {tensor.dtype(), tensor.dims()};
  SS_ASSIGN(const DataLayout layout, layOut(graph, options.data, types));
  std::map<std::string, FileSource::Array> arrays;
  for (const auto& [name, perStep] : layout.perStep) {
    const DType wanted = graph.value(graph.findValue(name)).type.dtype;
    SS_ASSIGN(Tensor tensor, inTypeOf(wanted, fmt::format("data '{}': array '{}'", options.data, name), files.at(name)));
    arrays[name] = {std::move(tensor), perStep};
  }
  return std::make_unique<FileSource>(std::move(arrays), layout.entries);
}

// Every axis by its symbols.
Result<Dims> extentsOf(const Value& value, const SyntheticDims& dims) {
  if (!value.type.shape) return invalid(fmt::format("input '{}': its rank is unknown; expected --data for it", value.name));
  Dims extents;
  for (const Dim& dim : *value.type.shape) {
    SS_ASSIGN(const std::int64_t extent, dims.extent(value.name, dim));
    extents.push_back(extent);
  }
  SS_TRY(checkedElementCount(extents));
  if (elementCount(extents) > (std::int64_t{1} << 32))
    return fail(ErrorCode::kLimitExceeded,
                fmt::format("input '{}': synthetic data of shape {}; expected at most 2^32 elements", value.name,
                            dimsText(extents)));
  return extents;
}

struct SyntheticExtents {
  std::map<std::string, Dims> inputs;
  std::vector<std::string> notes;
};

// Extents of all inputs: by symbols, and of the labels of an attached loss by the output that they are compared with.
Result<SyntheticExtents> syntheticExtents(const Graph& graph, const std::vector<ValueId>& fed, const TrainOptions& options,
                                          const Operators& operators, const std::vector<DimChoice>& fitted) {
  std::vector<ValueId> others, labels;
  for (const ValueId id : fed) (comparedOutput(graph, id) ? labels : others).push_back(id);
  const SyntheticDims free(graph, others, options.dims, fitted);
  if (!labels.empty() && free.unused().empty()) {
    SyntheticExtents extents{{}, free.notes()};
    std::vector<SyntheticSource::Input> integers;
    for (const ValueId id : others) {
      const Value& value = graph.value(id);
      SS_ASSIGN(extents.inputs[value.name], extentsOf(value, free));
      if (isInteger(value.type.dtype) || value.type.dtype == DType::kBool)
        integers.push_back({value.name, value.type.dtype, extents.inputs[value.name], inferRole(graph, id), 0, false});
    }
    SS_ASSIGN(const Batch batch,
              SyntheticSource(std::move(integers), extents.inputs, options.seed, options.padding).batch(0));
    const std::map<std::string, Dims> known = extents.inputs;
    for (const ValueId id : labels) {
      auto derived = labelExtents(graph, operators, id, known, batch);
      if (!derived) continue;
      const Value& output = graph.value(comparedOutput(graph, id));
      if (elementCount(*derived) == 0)
        return invalid(
            fmt::format("output '{}': shape {} with synthetic data; expected elements to compute a loss from; hint: "
                        "larger extents of the inputs, --dim NAME=N",
                        output.name, dimsText(*derived)));
      extents.inputs[graph.value(id).name] = std::move(*derived);
    }
    if (extents.inputs.size() == fed.size()) return extents;
  }
  const SyntheticDims dims(graph, fed, options.dims, fitted);
  if (!dims.unused().empty())
    return failOption(ErrorCode::kNotFound, "dim", fmt::format("no input has a dimension '{}'", dims.unused().front()));
  SyntheticExtents extents{{}, dims.notes()};
  for (const ValueId id : fed) {
    SS_ASSIGN(extents.inputs[graph.value(id).name], extentsOf(graph.value(id), dims));
  }
  return extents;
}

// What each input is filled with.
std::vector<SyntheticSource::Input> syntheticInputs(const Graph& graph, const std::vector<ValueId>& fed,
                                                    const TrainOptions& options, const SyntheticExtents& extents,
                                                    std::vector<std::string>* notes) {
  std::vector<SyntheticSource::Input> inputs;
  for (const ValueId id : fed) {
    const Value& value = graph.value(id);
    SyntheticSource::Input input{value.name, value.type.dtype, extents.inputs.at(value.name), inferRole(graph, id), 0,
                                 false};
    if (const auto it = options.pad.find(value.name); it != options.pad.end()) {
      input.padded = true;
      input.padValue = it->second;
    } else if (input.role.kind == InputRole::Kind::kLabels && options.padding > 0) {
      input.padded = true;
      input.padValue = -100;
    } else if (input.role.kind == InputRole::Kind::kTokens && options.padding > 0) {
      input.padded = true;
    }
    if (notes)
      notes->push_back(fmt::format("input '{}': synthetic {} ({})", value.name, input.role.text, input.role.reason));
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace

Result<DataLayout> layOut(const Graph& graph, const std::string& data, const std::map<std::string, ArrayType>& arrays) {
  DataLayout layout;
  std::string entriesFrom;
  for (const ValueId id : graph.inputs()) {
    const Value& input = graph.value(id);
    if (isStepInput(input.name)) continue;
    const auto it = arrays.find(input.name);
    if (it == arrays.end()) {
      std::string found;
      for (const auto& [name, array] : arrays) found += (found.empty() ? "" : ", ") + name;
      if (found.empty()) found = "none";
      if (comparedOutput(graph, id))
        return tl::make_unexpected(
            Error{ErrorCode::kNotFound,
                  fmt::format("data '{}': no array '{}', which the attached loss compares with; found {}; expected an array "
                              "of that name, or labels set to the input that has the targets",
                              data, input.name, found),
                  "labels"});
      return fail(ErrorCode::kNotFound, fmt::format("data '{}': no array '{}'; found {}", data, input.name, found));
    }
    SS_ASSIGN(const bool perStep, fitsInput(data, input, it->second));
    layout.perStep[input.name] = perStep;
    if (!perStep) continue;
    const std::int64_t count = it->second.dims[0];
    if (count == 0)
      return invalid(fmt::format("data '{}': array '{}' has no entries; expected at least one", data, input.name));
    if (layout.entries != 0 && layout.entries != count)
      return invalid(fmt::format("data '{}': array '{}' has {} entries, '{}' has {}; expected as many", data, input.name,
                                 count, entriesFrom, layout.entries));
    layout.entries = count;
    entriesFrom = input.name;
  }
  return layout;
}

Result<std::unique_ptr<DataSource>> openData(const Graph& graph, const TrainOptions& options, const Operators& operators,
                                             std::vector<std::string>* notes, const std::vector<DimChoice>& fitted) {
  for (const auto& [name, value] : options.pad) {
    const ValueId id = graph.findValue(name);
    if (!id || graph.value(id).role != ValueRole::kInput)
      return failOption(ErrorCode::kNotFound, "pad",
                        fmt::format("'{}' is no input of the model; `stepscope inspect` lists them", name));
  }
  if (!options.data.empty()) {
    if (notes && !options.dims.empty())
      notes->push_back(fmt::format("--dim {}={} concerns synthetic data; extents are those of '{}'",
                                   options.dims.begin()->first, options.dims.begin()->second, options.data));
    return openFiles(graph, options);
  }
  std::vector<ValueId> fed;
  for (const ValueId id : graph.inputs())
    if (!isStepInput(graph.value(id).name)) fed.push_back(id);
  for (const ValueId id : fed)
    if (graph.value(id).type.dtype == DType::kString)
      return unsupported(fmt::format("input '{}': strings have no synthetic data; expected --data", graph.value(id).name));
  SS_ASSIGN(const SyntheticExtents extents, syntheticExtents(graph, fed, options, operators, fitted));
  if (notes) notes->insert(notes->end(), extents.notes.begin(), extents.notes.end());
  std::vector<SyntheticSource::Input> inputs = syntheticInputs(graph, fed, options, extents, notes);
  return std::make_unique<SyntheticSource>(std::move(inputs), extents.inputs, options.seed, options.padding);
}

Result<Batch> batchOf(const Graph& graph, const std::string& data, const std::map<std::string, Tensor>& arrays) {
  std::map<std::string, ArrayType> types;
  for (const auto& [name, tensor] : arrays) {
    const ValueId id = graph.findValue(name);
    if (!id || graph.value(id).role != ValueRole::kInput)
      return fail(ErrorCode::kNotFound, fmt::format("data '{}': array '{}' is no input of the model", data, name));
    types[name] = {tensor.dtype(), tensor.dims()};
  }
  SS_ASSIGN(const DataLayout layout, layOut(graph, data, types));
  Batch batch;
  batch.label = data;
  for (const auto& [name, perStep] : layout.perStep) {
    const ValueType& type = graph.value(graph.findValue(name)).type;
    if (perStep)
      return invalid(fmt::format("data '{}': array '{}' has shape {}; expected {}", data, name,
                                 dimsText(types.at(name).dims), type.text()));
    SS_ASSIGN(batch.arrays[name], inTypeOf(type.dtype, fmt::format("data '{}': array '{}'", data, name), arrays.at(name)));
  }
  return batch;
}

Result<Batch> emptyBatch(const Graph& graph, const TrainOptions& options, const Operators& operators,
                         const std::vector<DimChoice>& fitted) {
  std::vector<ValueId> fed;
  for (const ValueId id : graph.inputs())
    if (!isStepInput(graph.value(id).name)) fed.push_back(id);
  SS_ASSIGN(const SyntheticExtents extents, syntheticExtents(graph, fed, options, operators, fitted));
  // How many labels and tokens count decides about a plan.
  std::vector<SyntheticSource::Input> inputs = syntheticInputs(graph, fed, options, extents, nullptr);
  const auto isCounted = [](DType dtype) { return !isFloating(dtype) && dtype != DType::kString; };
  std::erase_if(inputs, [&](const SyntheticSource::Input& input) { return !isCounted(input.dtype); });
  SS_ASSIGN(Batch batch, SyntheticSource(std::move(inputs), extents.inputs, options.seed, options.padding).batch(0));
  batch.label = "empty";
  for (const ValueId id : fed)
    if (const Value& value = graph.value(id); !isCounted(value.type.dtype))
      batch.arrays[value.name] = Tensor(value.type.dtype, extents.inputs.at(value.name));
  return batch;
}

}  // namespace stepscope
