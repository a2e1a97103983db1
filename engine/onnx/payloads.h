// The raw contents of large initializers, kept out of the parser: protobuf would copy them, and then they were there twice.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/onnx/prescan.h"

namespace stepscope {

// The message without the payloads. Lengths that counted them are changed in place and keep their number of bytes (a varint
// may end in zeros), so every other byte moves up by what was left out before it.
std::vector<std::byte> withoutPayloads(std::span<const std::byte> bytes, std::span<const RawPayload> payloads);

// By the tensor that a payload was left out of.
using PayloadsByTensor = std::unordered_map<const onnx::TensorProto*, std::span<const std::byte>>;
PayloadsByTensor payloadsByTensor(const onnx::GraphProto& graph, std::span<const std::byte> bytes,
                                  std::span<const RawPayload> payloads);

// Gives the pages that lie within `bytes` back to the system: nobody reads them any more. The memory stays ours and reads as
// zeros.
void releasePages(std::span<const std::byte> bytes);

}  // namespace stepscope
