#include "engine/data/onnxruntime_checkpoint.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "engine/data/file.h"
#include "engine/data/limits.h"
#include "engine/data/onnxruntime_checkpoint_generated.h"

namespace stepscope {
namespace {

namespace fb = onnxruntime;

constexpr int kCheckpointVersion = 2;
constexpr std::size_t kExternalFrom = 64;  // bytes of a tensor
constexpr std::int64_t kExternalAlignment = 8;

using Bytes = std::shared_ptr<std::vector<std::byte>>;

std::filesystem::path dataFile(const std::filesystem::path& path) { return path.string() + ".data"; }

std::string textOf(const flatbuffers::String* text) { return text ? text->str() : std::string(); }

class CheckpointReader {
 public:
  explicit CheckpointReader(const std::filesystem::path& path) : path_(path) {}

  Result<OnnxruntimeCheckpoint> read() && {
    SS_ASSIGN(auto bytes, readWholeFile(path_, limits::kModelFileBytes, "checkpoint"));
    file_ = std::make_shared<std::vector<std::byte>>(std::move(bytes));
    const auto* data = reinterpret_cast<const std::uint8_t*>(file_->data());
    flatbuffers::Verifier verifier(data, file_->size());
    if (file_->size() < 8 || !fb::CheckpointBufferHasIdentifier(data) || !fb::VerifyCheckpointBuffer(verifier))
      return wrong("not a checkpoint of ONNX Runtime, or damaged");
    const fb::Checkpoint& checkpoint = *fb::GetCheckpoint(data);
    if (checkpoint.version() != kCheckpointVersion)
      return unsupported(fmt::format("checkpoint '{}': version {}; this build reads version {}", path_.string(),
                                     checkpoint.version(), kCheckpointVersion));
    if (const fb::ModuleState* module = checkpoint.module_state()) SS_TRY(readModule(*module));
    if (checkpoint.optimizer_groups())
      for (const fb::OptimizerGroup* group : *checkpoint.optimizer_groups()) SS_TRY(readGroup(*group));
    if (const fb::PropertyBag* bag = checkpoint.property_bag()) readProperties(*bag);
    return std::move(result_);
  }

 private:
  tl::unexpected<Error> wrong(const std::string& what) const {
    return fail(ErrorCode::kCorrupt, fmt::format("checkpoint '{}': {}", path_.string(), what));
  }

  Status readModule(const fb::ModuleState& module) {
    result_.nominal = module.is_nominal_state();
    if (module.has_external_data()) {
      SS_ASSIGN(auto bytes, readWholeFile(dataFile(path_), limits::kWeightBytes, "data of a checkpoint"));
      external_ = std::make_shared<std::vector<std::byte>>(std::move(bytes));
    }
    SS_TRY(readTensors(module.requires_grad_params(), result_.trained));
    return readTensors(module.frozen_params(), result_.frozen);
  }

  Status readTensors(const flatbuffers::Vector<flatbuffers::Offset<fb::Tensor>>* from, OnnxruntimeCheckpoint::Tensors& to) {
    if (!from) return {};
    for (const fb::Tensor* entry : *from) {
      const std::string name = textOf(entry->name());
      SS_ASSIGN(Tensor tensor, readTensor(name, *entry));
      if (result_.trained.contains(name) || result_.frozen.contains(name))
        return invalid(fmt::format("checkpoint '{}': parameter '{}' is given twice", path_.string(), name));
      to.emplace(name, std::move(tensor));
    }
    return {};
  }

  Result<Tensor> readTensor(const std::string& name, const fb::Tensor& entry) const {
    const auto dtype = dtypeFromOnnx(entry.data_type());
    if (!dtype || *dtype == DType::kString || *dtype == DType::kUndefined)
      return unsupported(
          fmt::format("checkpoint '{}': tensor '{}': element type {}", path_.string(), name, entry.data_type()));
    Dims dims;
    if (entry.dims())
      for (const std::int64_t extent : *entry.dims()) dims.push_back(extent);
    const auto elements = checkedElementCount(dims);
    if (!elements || dims.size() > static_cast<std::size_t>(limits::kTensorRank))
      return wrong(fmt::format("tensor '{}': extents {}", name, dimsText(dims)));
    if (result_.nominal) return Tensor(*dtype, {0});
    const auto expected = static_cast<std::size_t>(*elements) * dtypeSize(*dtype);
    if (entry.external_data_offset() >= 0) {
      const auto offset = static_cast<std::size_t>(entry.external_data_offset());
      if (!external_ || offset > external_->size() || external_->size() - offset < expected)
        return wrong(fmt::format("tensor '{}': bytes {} to {} of its data file; the file has {}", name, offset,
                                 offset + expected, external_ ? external_->size() : 0));
      return borrowed(*dtype, std::move(dims), external_, external_->data() + offset);
    }
    const std::size_t found = entry.raw_data() ? entry.raw_data()->size() : 0;
    if (found != expected)
      return wrong(fmt::format("tensor '{}': {} bytes; expected {} for {}{}", name, found, expected, dtypeName(*dtype),
                               dimsText(dims)));
    if (found == 0) return Tensor(*dtype, std::move(dims));
    const auto begin = entry.raw_data()->data() - reinterpret_cast<const std::uint8_t*>(file_->data());
    return borrowed(*dtype, std::move(dims), file_, file_->data() + begin);
  }

  // Kernels read whole elements: what lies askew is copied.
  static Tensor borrowed(DType dtype, Dims dims, const Bytes& owner, std::byte* data) {
    if (reinterpret_cast<std::uintptr_t>(data) % dtypeSize(dtype) == 0) return Tensor(dtype, std::move(dims), owner, data);
    Tensor copy(dtype, std::move(dims));
    std::memcpy(copy.data(), data, copy.bytes());
    return copy;
  }

  Status readGroup(const fb::OptimizerGroup& group) {
    OnnxruntimeCheckpoint::Group read{textOf(group.group_name()), group.step(), group.initial_learning_rate(), {}};
    if (read.step < 0) return wrong(fmt::format("group '{}': step {}", read.name, read.step));
    if (group.optimizer_states())
      for (const fb::ParameterOptimizerState* state : *group.optimizer_states()) {
        const std::string name = textOf(state->param_name());
        std::vector<Tensor>& moments = read.moments[name];
        if (!state->momentums()) continue;
        moments.resize(state->momentums()->size());
        std::size_t next = 0;
        for (const fb::Tensor* moment : *state->momentums()) {
          const std::size_t place = momentPlace(textOf(moment->name())).value_or(next++);
          if (place >= moments.size() || moments[place].valid())
            return wrong(fmt::format("moment '{}' of '{}'", textOf(moment->name()), name));
          SS_ASSIGN(moments[place], readTensor(name, *moment));
        }
      }
    result_.groups.push_back(std::move(read));
    return {};
  }

  static std::optional<std::size_t> momentPlace(const std::string& name) {
    if (name == "momentum0") return 0;
    if (name == "momentum1") return 1;
    return std::nullopt;
  }

  void readProperties(const fb::PropertyBag& bag) {
    if (bag.ints())
      for (const fb::IntProperty* property : *bag.ints()) result_.ints[textOf(property->name())] = property->value();
    if (bag.floats())
      for (const fb::FloatProperty* property : *bag.floats()) result_.floats[textOf(property->name())] = property->value();
    if (bag.strings())
      for (const fb::StringProperty* property : *bag.strings())
        result_.texts[textOf(property->name())] = textOf(property->value());
  }

  std::filesystem::path path_;
  Bytes file_, external_;
  OnnxruntimeCheckpoint result_;
};

class CheckpointWriter {
 public:
  CheckpointWriter(const std::filesystem::path& path, const OnnxruntimeCheckpoint& checkpoint, bool external)
      : path_(path), checkpoint_(checkpoint) {
    if (external) data_.emplace(dataFile(path));
  }

  Status write() && {
    if (data_) SS_TRY(data_->open());
    SS_ASSIGN(const auto trained, tensors(checkpoint_.trained));
    SS_ASSIGN(const auto frozen, tensors(checkpoint_.frozen));
    const auto module = fb::CreateModuleStateDirect(builder_, &trained, &frozen, checkpoint_.nominal, data_.has_value());
    std::vector<flatbuffers::Offset<fb::OptimizerGroup>> groups;
    for (const OnnxruntimeCheckpoint::Group& group : checkpoint_.groups) {
      SS_ASSIGN(const auto states, moments(group));
      groups.push_back(
          fb::CreateOptimizerGroupDirect(builder_, group.name.c_str(), group.step, group.initialLearningRate, &states));
    }
    const auto bag = properties();
    fb::FinishCheckpointBuffer(builder_, fb::CreateCheckpointDirect(builder_, kCheckpointVersion, module, &groups, bag));
    if (data_) SS_TRY(data_->commit());
    AtomicFile file(path_);
    SS_TRY(file.open());
    SS_TRY(file.append(builder_.GetBufferPointer(), builder_.GetSize()));
    return file.commit();
  }

 private:
  Result<flatbuffers::Offset<fb::Tensor>> tensor(const std::string& name, const TensorView& view, bool contents) {
    if (view.dtype == DType::kString)
      return unsupported(fmt::format("checkpoint '{}': tensor '{}' of strings", path_.string(), name));
    const std::vector<std::int64_t> dims(view.dims.begin(), view.dims.end());
    if (!contents) return fb::CreateTensorDirect(builder_, name.c_str(), nullptr, nullptr, static_cast<int>(view.dtype));
    if (data_ && view.bytes() >= kExternalFrom) {
      SS_ASSIGN(const std::int64_t offset, data_->appendAligned(view.data, view.bytes(), kExternalAlignment));
      return fb::CreateTensorDirect(builder_, name.c_str(), nullptr, &dims, static_cast<int>(view.dtype), nullptr, nullptr,
                                    offset);
    }
    builder_.ForceVectorAlignment(view.bytes(), 1, kExternalAlignment);
    const auto raw = builder_.CreateVector(static_cast<const std::uint8_t*>(view.data), view.bytes());
    const auto shape = builder_.CreateVector(dims);
    const auto shownName = builder_.CreateString(name);
    return fb::CreateTensor(builder_, shownName, 0, shape, static_cast<int>(view.dtype), raw);
  }

  Result<std::vector<flatbuffers::Offset<fb::Tensor>>> tensors(const OnnxruntimeCheckpoint::Tensors& from) {
    std::vector<flatbuffers::Offset<fb::Tensor>> made;
    for (const auto& [name, contents] : from) {
      SS_ASSIGN(const auto offset, tensor(name, contents.view(), !checkpoint_.nominal));
      made.push_back(offset);
    }
    return made;
  }

  Result<std::vector<flatbuffers::Offset<fb::ParameterOptimizerState>>> moments(const OnnxruntimeCheckpoint::Group& group) {
    std::vector<flatbuffers::Offset<fb::ParameterOptimizerState>> made;
    for (const auto& [name, of] : group.moments) {
      std::vector<flatbuffers::Offset<fb::Tensor>> contents;
      for (std::size_t i = 0; i < of.size(); ++i) {
        SS_ASSIGN(const auto offset, tensor(fmt::format("momentum{}", i), of[i].view(), true));
        contents.push_back(offset);
      }
      made.push_back(fb::CreateParameterOptimizerStateDirect(builder_, name.c_str(), &contents));
    }
    return made;
  }

  flatbuffers::Offset<fb::PropertyBag> properties() {
    std::vector<flatbuffers::Offset<fb::IntProperty>> ints;
    for (const auto& [name, value] : checkpoint_.ints)
      ints.push_back(fb::CreateIntPropertyDirect(builder_, name.c_str(), value));
    std::vector<flatbuffers::Offset<fb::FloatProperty>> floats;
    for (const auto& [name, value] : checkpoint_.floats)
      floats.push_back(fb::CreateFloatPropertyDirect(builder_, name.c_str(), value));
    std::vector<flatbuffers::Offset<fb::StringProperty>> texts;
    for (const auto& [name, value] : checkpoint_.texts)
      texts.push_back(fb::CreateStringPropertyDirect(builder_, name.c_str(), value.c_str()));
    return fb::CreatePropertyBagDirect(builder_, &ints, &floats, &texts);
  }

  std::filesystem::path path_;
  const OnnxruntimeCheckpoint& checkpoint_;
  std::optional<AtomicFile> data_;
  flatbuffers::FlatBufferBuilder builder_;
};

std::int64_t bytesOf(const OnnxruntimeCheckpoint& checkpoint) {
  std::int64_t bytes = 0;
  for (const auto* tensors : {&checkpoint.trained, &checkpoint.frozen})
    for (const auto& [name, tensor] : *tensors) bytes += static_cast<std::int64_t>(tensor.bytes());
  for (const OnnxruntimeCheckpoint::Group& group : checkpoint.groups)
    for (const auto& [name, moments] : group.moments)
      for (const Tensor& moment : moments) bytes += static_cast<std::int64_t>(moment.bytes());
  return bytes;
}

}  // namespace

bool isOnnxruntimeCheckpoint(const std::filesystem::path& path) {
  const auto file = InputFile::open(path, limits::kModelFileBytes, "checkpoint");
  std::uint8_t begin[8];
  return file && file->bytes() >= 8 && file->read(0, begin, sizeof begin) && fb::CheckpointBufferHasIdentifier(begin);
}

Result<OnnxruntimeCheckpoint> readOnnxruntimeCheckpoint(const std::filesystem::path& path) {
  return CheckpointReader(path).read();
}

Status writeOnnxruntimeCheckpoint(const std::filesystem::path& path, const OnnxruntimeCheckpoint& checkpoint,
                                  std::int64_t externalAbove) {
  return CheckpointWriter(path, checkpoint, !checkpoint.nominal && bytesOf(checkpoint) > externalAbove).write();
}

}  // namespace stepscope
