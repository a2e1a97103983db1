// Every limit on what a model file may ask of us, in one place. A value above its limit is ErrorCode::kLimitExceeded with
// found and allowed number; nothing is allocated for it. Source of the figures: published limits of ONNX, ONNX Runtime and
// protobuf, and measurements of what parsers let through.
#pragma once

#include <cstdint>

namespace stepscope::limits {

inline constexpr std::int64_t kMiB = std::int64_t{1} << 20;
inline constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// protobuf cannot hold a message of 2 GiB or more; ONNX keeps larger weights in external files.
inline constexpr std::int64_t kModelFileBytes = 2 * kGiB - 1;
// Memory that parsing may take: kHeapFactor × file + kHeapSlack. A real model is near 1 × its file (weights dominate) or a
// few × (a graph without weights); empty submessages take up to 143 ×, so a few MB could otherwise take all memory.
inline constexpr std::int64_t kHeapFactor = 8;
inline constexpr std::int64_t kHeapSlack = 64 * kMiB;
// Messages, strings and unknown fields together; 20 million empty ones are about 6 GB.
inline constexpr std::int64_t kMessages = 20'000'000;
// The library's own recursion limit; more only wastes stack.
inline constexpr int kMessageNesting = 100;
// If/Loop bodies inside bodies; ONNX Runtime has the same 32, and protobuf's nesting lets no more than 33 through.
inline constexpr int kSubgraphNesting = 32;
// sequence(optional(map(…))).
inline constexpr int kTypeNesting = 16;
inline constexpr std::int64_t kFunctions = 10'000;
// A function that calls a function that …; ONNX's and ONNX Runtime's number.
inline constexpr int kCallDepth = 100;
// Stops fan-out bombs (each function calls the next one twice) before anything is copied: a node takes 8 KB until the step
// is built. A file that holds more nodes than this itself may have as many after inlining.
inline constexpr std::int64_t kNodesAfterInlining = 250'000;
// Inputs, outputs or attributes of one node; Concat and Split of big models reach hundreds.
inline constexpr std::int64_t kNodePorts = 65'536;
// Loops and views are sized for 8 axes; real models stop at 6.
inline constexpr std::int64_t kTensorRank = 8;
// User address space of x86-64.
inline constexpr std::int64_t kTensorBytes = std::int64_t{1} << 47;
// Total of the weights in one model.
inline constexpr std::int64_t kWeightBytes = std::int64_t{1} << 47;
inline constexpr std::int64_t kExternalFiles = 10'000;
inline constexpr std::int64_t kNameBytes = 65'536;
inline constexpr std::int64_t kTextBytes = 16 * kMiB;           // doc_string, one metadata value, string attribute
inline constexpr std::int64_t kStringElementBytes = 16 * kMiB;  // one element of a string tensor
inline constexpr std::int64_t kStringTensorBytes = kGiB;
// Versions this build reads. Older ones differ in the meaning of attributes, newer ones are unknown.
inline constexpr std::int64_t kMinOpset = 1;
inline constexpr std::int64_t kMaxOpset = 28;
inline constexpr std::int64_t kAssumedOpset = 21;  // of nodes that name none
inline constexpr std::int64_t kMinIrVersion = 3;
inline constexpr std::int64_t kMaxIrVersion = 14;
// Ids of nodes in a graph that we saved; more would be a file that only wastes memory.
inline constexpr std::int64_t kSavedIdFactor = 16;
inline constexpr std::int64_t kSavedIdSlack = 100'000;

// Data files.
inline constexpr std::int64_t kSafetensorsHeaderBytes = 100'000'000;  // the format's own number
inline constexpr std::int64_t kNpyHeaderBytes = kMiB;
inline constexpr std::int64_t kArchiveEntries = 65'536;
// Elements of all arrays of one archive: deflate makes 1 KB into 1 MB, so the size of the file bounds nothing.
inline constexpr std::int64_t kArchiveBytes = 16 * kGiB;

// How many problems of one model are kept; the count goes on.
inline constexpr std::size_t kProblemsKept = 1'000;

}  // namespace stepscope::limits
