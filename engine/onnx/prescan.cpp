#include "engine/onnx/prescan.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "engine/data/limits.h"

namespace stepscope {
namespace {

enum Type : std::uint8_t {
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kSparseTensor,
  kValueInfo,
  kTypeProto,
  kTensorType,
  kSequenceType,
  kMapType,
  kOptionalType,
  kOpaqueType,
  kShape,
  kDimension,
  kEntry,
  kOpset,
  kFunction,
  kTraining,
  kSegment,
  kAnnotation,
  kTypeCount
};

// What a length-delimited field holds. Everything else is a number, or unknown to the classes.
enum class Content : std::uint8_t { kMessage, kName, kText, kPayload, kPacked4, kPacked8, kElement };

struct Rule {
  Type parent;
  int field;
  Content content;
  Type child = kModel;
};

// From onnx.proto of 1.12, plus metadata_props of later versions (kept as unknown fields by the classes).
constexpr std::array kRules{
    Rule{kModel, 2, Content::kName},
    Rule{kModel, 3, Content::kName},
    Rule{kModel, 4, Content::kName},
    Rule{kModel, 6, Content::kText},
    Rule{kModel, 7, Content::kMessage, kGraph},
    Rule{kModel, 8, Content::kMessage, kOpset},
    Rule{kModel, 14, Content::kMessage, kEntry},
    Rule{kModel, 20, Content::kMessage, kTraining},
    Rule{kModel, 25, Content::kMessage, kFunction},
    Rule{kGraph, 1, Content::kMessage, kNode},
    Rule{kGraph, 2, Content::kName},
    Rule{kGraph, 5, Content::kMessage, kTensor},
    Rule{kGraph, 10, Content::kText},
    Rule{kGraph, 11, Content::kMessage, kValueInfo},
    Rule{kGraph, 12, Content::kMessage, kValueInfo},
    Rule{kGraph, 13, Content::kMessage, kValueInfo},
    Rule{kGraph, 14, Content::kMessage, kAnnotation},
    Rule{kGraph, 15, Content::kMessage, kSparseTensor},
    Rule{kNode, 1, Content::kName},
    Rule{kNode, 2, Content::kName},
    Rule{kNode, 3, Content::kName},
    Rule{kNode, 4, Content::kName},
    Rule{kNode, 5, Content::kMessage, kAttribute},
    Rule{kNode, 6, Content::kText},
    Rule{kNode, 7, Content::kName},
    Rule{kAttribute, 1, Content::kName},
    Rule{kAttribute, 4, Content::kText},
    Rule{kAttribute, 5, Content::kMessage, kTensor},
    Rule{kAttribute, 6, Content::kMessage, kGraph},
    Rule{kAttribute, 7, Content::kPacked4},
    Rule{kAttribute, 8, Content::kPacked8},
    Rule{kAttribute, 9, Content::kElement},
    Rule{kAttribute, 10, Content::kMessage, kTensor},
    Rule{kAttribute, 11, Content::kMessage, kGraph},
    Rule{kAttribute, 13, Content::kText},
    Rule{kAttribute, 14, Content::kMessage, kTypeProto},
    Rule{kAttribute, 15, Content::kMessage, kTypeProto},
    Rule{kAttribute, 21, Content::kName},
    Rule{kAttribute, 22, Content::kMessage, kSparseTensor},
    Rule{kAttribute, 23, Content::kMessage, kSparseTensor},
    Rule{kTensor, 1, Content::kPacked8},
    Rule{kTensor, 3, Content::kMessage, kSegment},
    Rule{kTensor, 4, Content::kPayload},
    Rule{kTensor, 5, Content::kPacked4},
    Rule{kTensor, 6, Content::kElement},
    Rule{kTensor, 7, Content::kPacked8},
    Rule{kTensor, 8, Content::kName},
    Rule{kTensor, 9, Content::kPayload},
    Rule{kTensor, 10, Content::kPayload},
    Rule{kTensor, 11, Content::kPacked8},
    Rule{kTensor, 12, Content::kText},
    Rule{kTensor, 13, Content::kMessage, kEntry},
    Rule{kSparseTensor, 1, Content::kMessage, kTensor},
    Rule{kSparseTensor, 2, Content::kMessage, kTensor},
    Rule{kSparseTensor, 3, Content::kPacked8},
    Rule{kValueInfo, 1, Content::kName},
    Rule{kValueInfo, 2, Content::kMessage, kTypeProto},
    Rule{kValueInfo, 3, Content::kText},
    Rule{kTypeProto, 1, Content::kMessage, kTensorType},
    Rule{kTypeProto, 4, Content::kMessage, kSequenceType},
    Rule{kTypeProto, 5, Content::kMessage, kMapType},
    Rule{kTypeProto, 6, Content::kName},
    Rule{kTypeProto, 7, Content::kMessage, kOpaqueType},
    Rule{kTypeProto, 8, Content::kMessage, kTensorType},
    Rule{kTypeProto, 9, Content::kMessage, kOptionalType},
    Rule{kTensorType, 2, Content::kMessage, kShape},
    Rule{kSequenceType, 1, Content::kMessage, kTypeProto},
    Rule{kMapType, 2, Content::kMessage, kTypeProto},
    Rule{kOptionalType, 1, Content::kMessage, kTypeProto},
    Rule{kOpaqueType, 1, Content::kName},
    Rule{kOpaqueType, 2, Content::kName},
    Rule{kShape, 1, Content::kMessage, kDimension},
    Rule{kDimension, 2, Content::kName},
    Rule{kDimension, 3, Content::kName},
    Rule{kEntry, 1, Content::kName},
    Rule{kEntry, 2, Content::kText},
    Rule{kOpset, 1, Content::kName},
    Rule{kFunction, 1, Content::kName},
    Rule{kFunction, 4, Content::kName},
    Rule{kFunction, 5, Content::kName},
    Rule{kFunction, 6, Content::kName},
    Rule{kFunction, 7, Content::kMessage, kNode},
    Rule{kFunction, 8, Content::kText},
    Rule{kFunction, 9, Content::kMessage, kOpset},
    Rule{kFunction, 10, Content::kName},
    Rule{kTraining, 1, Content::kMessage, kGraph},
    Rule{kTraining, 2, Content::kMessage, kGraph},
    Rule{kTraining, 3, Content::kMessage, kEntry},
    Rule{kTraining, 4, Content::kMessage, kEntry},
    Rule{kAnnotation, 1, Content::kName},
    Rule{kAnnotation, 2, Content::kMessage, kEntry},
};

constexpr int kTableFields = 32;

struct RuleTable {
  std::array<std::array<const Rule*, kTableFields>, kTypeCount> rows{};
  RuleTable() {
    for (const Rule& rule : kRules) rows[rule.parent][static_cast<std::size_t>(rule.field)] = &rule;
  }
};

std::size_t classSize(Type type) {
  switch (type) {
    case kModel: return sizeof(onnx::ModelProto);
    case kGraph: return sizeof(onnx::GraphProto);
    case kNode: return sizeof(onnx::NodeProto);
    case kAttribute: return sizeof(onnx::AttributeProto);
    case kTensor: return sizeof(onnx::TensorProto);
    case kSparseTensor: return sizeof(onnx::SparseTensorProto);
    case kValueInfo: return sizeof(onnx::ValueInfoProto);
    case kTypeProto: return sizeof(onnx::TypeProto);
    case kDimension: return sizeof(onnx::TensorShapeProto_Dimension);
    case kFunction: return sizeof(onnx::FunctionProto);
    case kTraining: return sizeof(onnx::TrainingInfoProto);
    default: return 64;
  }
}

constexpr std::int64_t kAllocation = 24;  // what malloc and the repeated field's pointer add to an object

struct Frame {
  Type type;
  std::size_t end;
  std::int64_t ports = 0;  // node: inputs + outputs + attributes; tensor and shape: dims
  int graphDepth = 0;
  int typeDepth = 0;
  std::size_t lengthAt = 0;  // where its length is written
  bool raw = false;          // tensor: raw_data was met
};

class Scanner {
 public:
  explicit Scanner(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<PrescanReport> run() {
    stack_.push_back({kModel, bytes_.size()});
    while (!stack_.empty()) {
      if (at_ == stack_.back().end) {
        stack_.pop_back();
        continue;
      }
      SS_TRY(field());
      if (report_.messages > limits::kMessages) return exceeded("messages", report_.messages, limits::kMessages);
      const std::int64_t allowed = limits::kHeapFactor * static_cast<std::int64_t>(bytes_.size()) + limits::kHeapSlack;
      if (report_.heapBytes > allowed) return exceeded("bytes of memory to parse it", report_.heapBytes, allowed);
    }
    return report_;
  }

 private:
  tl::unexpected<Error> corrupt(std::string_view what) const {
    return fail(ErrorCode::kCorrupt,
                fmt::format("model: {} at byte {} of {}; expected an ONNX protobuf file", what, at_, bytes_.size()));
  }
  static tl::unexpected<Error> exceeded(std::string_view what, std::int64_t found, std::int64_t allowed) {
    return fail(ErrorCode::kLimitExceeded, fmt::format("model: {} {}; at most {} are read", found, what, allowed));
  }

  bool varint(std::uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= stack_.back().end) return false;
      const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  Status skip(std::size_t count) {
    if (count > stack_.back().end - at_) return corrupt("truncated field");
    at_ += count;
    return {};
  }

  Status field() {
    std::uint64_t tag = 0;
    if (!varint(tag)) return corrupt("malformed tag");
    if (tag > std::numeric_limits<std::uint32_t>::max() || (tag >> 3) == 0) return corrupt("malformed tag");
    const auto number = static_cast<int>(tag >> 3);
    ++report_.messages;
    switch (tag & 7) {
      case 0: {
        std::uint64_t ignored = 0;
        if (!varint(ignored)) return corrupt("malformed number");
        return scalar(number);
      }
      case 1: report_.heapBytes += 16; return skip(8);
      case 5: report_.heapBytes += 16; return skip(4);
      case 2: {
        std::uint64_t length = 0;
        const std::size_t lengthAt = at_;
        if (!varint(length)) return corrupt("malformed length");
        if (length > stack_.back().end - at_) return corrupt("truncated field");
        return delimited(number, static_cast<std::size_t>(length), lengthAt);
      }
      default: return corrupt("wire type that ONNX does not use");
    }
  }

  Status scalar(int number) {
    Frame& frame = stack_.back();
    report_.heapBytes += 16;
    if (frame.type == kTensor && number == 1) return port("dimensions of a tensor", 64);
    return {};
  }

  Status port(std::string_view what, std::int64_t allowed) {
    if (++stack_.back().ports > allowed) return exceeded(what, stack_.back().ports, allowed);
    return {};
  }

  // Of raw_data that is given twice the last counts, which is left to the parser.
  void noteRaw(std::size_t length, std::size_t lengthAt) {
    const bool again = std::exchange(stack_.back().raw, true);
    std::vector<RawPayload>& payloads = report_.payloads;
    if (again) {
      if (!payloads.empty() && payloads.back().tensor + 1 == initializers_) payloads.pop_back();
      return;
    }
    if (static_cast<std::int64_t>(length) < kPayloadBytes) return;
    payloads.push_back({initializers_ - 1, at_, length, {lengthAt, stack_[2].lengthAt, stack_[1].lengthAt}});
  }

  Status delimited(int number, std::size_t length, std::size_t lengthAt) {
    static const RuleTable table;
    const Frame& frame = stack_.back();
    const Rule* rule = number < kTableFields ? table.rows[frame.type][static_cast<std::size_t>(number)] : nullptr;
    const auto bytes = static_cast<std::int64_t>(length);
    if (frame.type == kNode && (number == 1 || number == 2 || number == 5))
      SS_TRY(port("inputs, outputs and attributes of one node", limits::kNodePorts));
    if (frame.type == kShape) SS_TRY(port("dimensions of a shape", limits::kNodePorts));
    if (!rule) {  // kept by the classes as an unknown field with a string of its own
      report_.heapBytes += bytes + 64 + kAllocation;
      return skip(length);
    }
    switch (rule->content) {
      case Content::kMessage: return enter(rule->child, length, lengthAt);
      case Content::kPayload:
        if (frame.type == kTensor && number == 9 && inMainGraph()) noteRaw(length, lengthAt);
        report_.heapBytes += bytes;
        return skip(length);
      case Content::kPacked4: report_.heapBytes += 4 * bytes; return skip(length);
      case Content::kPacked8: report_.heapBytes += 8 * bytes; return skip(length);
      case Content::kName:
        if (bytes > limits::kNameBytes) return exceeded("bytes in a name", bytes, limits::kNameBytes);
        break;
      case Content::kText:
        if (bytes > limits::kTextBytes) return exceeded("bytes in a text", bytes, limits::kTextBytes);
        break;
      case Content::kElement:
        if (bytes > limits::kStringElementBytes)
          return exceeded("bytes in a string element", bytes, limits::kStringElementBytes);
        break;
    }
    report_.heapBytes += 32 + kAllocation + (length > 15 ? bytes + 16 : 0);
    return skip(length);
  }

  // Whether the present message is a child of the model's graph.
  bool inMainGraph() const { return stack_.size() == 3 && stack_[1].type == kGraph; }

  Status enter(Type child, std::size_t length, std::size_t lengthAt) {
    Frame next{child, at_ + length};
    next.lengthAt = lengthAt;
    next.graphDepth = stack_.back().graphDepth + (child == kGraph ? 1 : 0);
    next.typeDepth = stack_.back().typeDepth + (child == kTypeProto ? 1 : 0);
    if (next.graphDepth > limits::kSubgraphNesting + 1)
      return exceeded("nested subgraphs", next.graphDepth - 1, limits::kSubgraphNesting);
    if (next.typeDepth > limits::kTypeNesting) return exceeded("nested types", next.typeDepth, limits::kTypeNesting);
    if (stack_.size() >= static_cast<std::size_t>(limits::kMessageNesting))
      return exceeded("nested messages", static_cast<std::int64_t>(stack_.size()) + 1, limits::kMessageNesting);
    if (child == kNode) ++report_.nodes;
    if (child == kFunction && ++report_.functions > limits::kFunctions)
      return exceeded("functions", report_.functions, limits::kFunctions);
    report_.heapBytes += static_cast<std::int64_t>(classSize(child)) + kAllocation;
    stack_.push_back(next);
    if (child == kTensor && inMainGraph()) ++initializers_;
    return {};
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::size_t initializers_ = 0;  // of the main graph, met so far
  std::vector<Frame> stack_;
  PrescanReport report_;
};

}  // namespace

Result<PrescanReport> prescanModel(std::span<const std::byte> bytes) {
  if (static_cast<std::int64_t>(bytes.size()) > limits::kModelFileBytes)
    return fail(
        ErrorCode::kLimitExceeded,
        fmt::format("model: {} bytes; at most {} can be one protobuf message; keep the weights in external data files",
                    bytes.size(), limits::kModelFileBytes));
  if (bytes.empty()) return fail(ErrorCode::kCorrupt, "model: the file is empty; expected an ONNX protobuf file");
  return Scanner(bytes).run();
}

}  // namespace stepscope
