// What com.microsoft says of attention, in ONNX's operators: Attention, MultiHeadAttention, GroupQueryAttention and
// RotaryEmbedding become Attention and RotaryEmbedding of opset 23, which lower_attention takes apart once ranks are known.
// A part of raise_microsoft.
//
//   Attention, MultiHeadAttention   without keys and values of the past, one output
//   GroupQueryAttention             q, k, v as three operands or packed; row i of a batch entry stands at position
//                                   p + i, p = max(0, seqlens_k + 1 - S), and attends to the positions j <= p + i that are
//                                   below seqlens_k + 1 and, with local_window_size w, above p + i - w; a row that attends
//                                   to nothing gives zeros. Keys and values of the past stand before the new ones, the first
//                                   p of them. present_key and present_value hold p + S entries, zeros behind them. Refused:
//                                   head_sink, smooth_softmax, quantised caches, output_qk, norms of q and k.
//
// Source: onnxruntime/docs/ContribOperators.md, and what ONNX Runtime 1.32 answers on the CPU
// (tests/golden/sources/make_group_query.py).
#pragma once

#include "engine/passes/node_raiser.h"

namespace stepscope {

class AttentionRaiser : protected NodeRaiser {
 protected:
  using NodeRaiser::NodeRaiser;

  Status attention();
  Status multiHeadAttention();
  Status groupQueryAttention();
  Status rotaryEmbedding();

 private:
  ValueId input(std::size_t i) const { return node().input(i); }
  // What is added to the scores for a mask of zeros and ones [B, T] or [B, S, T].
  Result<ValueId> addedMask(ValueId mask, float masked, ValueId like);
  // The node becomes ONNX's Attention of these operands.
  Status attend(ValueId query, ValueId key, ValueId value, ValueId added);
  Status onlyFirstOutput();

  // Of a GroupQueryAttention: what it has besides the operands that every one has, as an error.
  Status checkGroupQuery();
  struct Positions;
  Positions positionsOf();
  ValueId turned(ValueId x, ValueId positions);
  ValueId inOrder(ValueId past, ValueId added, const Positions& at);
  ValueId present(ValueId ordered, const Positions& at);
  ValueId groupQueryMask(const Positions& at);
  ValueId biased(ValueId allowed, const Positions& at);
  ValueId count(ValueId x, std::int64_t axis);  // an extent, as a vector of one element
  ValueId range(ValueId count);                 // 0 .. count - 1
  ValueId transposed(ValueId x);                // its two middle axes
};

}  // namespace stepscope
