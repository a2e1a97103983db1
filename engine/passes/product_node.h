// A matrix product as the passes that fold things into it see it: MatMul, Gemm, FusedMatMul, BatchedMatMul and Product in
// one form.
//
//   y = activation((alpha · a^permA · b^permB + bias)^permY + addend)       permutations are never empty here
#pragma once

#include <optional>
#include <string>

#include "engine/ir/graph.h"
#include "kernels/matmul_shape.h"

namespace stepscope {

struct ProductNode {
  ValueId a, b, bias, addend;
  float alpha = 1;
  Dims permA, permB, permY;
  Dims viewA = {}, viewB = {};  // the part of a or b that is the operand (kernels/strided_view.h); empty: all of it
  std::string activation = {};  // "Relu" or none

  // Whether more can be done to the result while it is written: nothing was yet that would come after it.
  bool open() const { return !addend && activation.empty(); }
};

// The node in that form; nothing when it is no product, an operand is a vector or of unknown rank, or Gemm scales or
// broadcasts its addend otherwise than as a row.
std::optional<ProductNode> readProduct(const Graph& graph, const Node& node);

// Makes `target` that product: domain, op, operands and attributes change, id, name and result stay. `from` is the product
// that it was, whose provenance it takes; the log says that it changed.
void writeProduct(Graph& graph, NodeId target, const Node& from, const ProductNode& product);

// What the product computes, batches of rows that share their right operand as one matrix where they lie evenly. Nothing
// when the extents are not known.
std::optional<MatMulShape> shapeOfProduct(const Graph& graph, const ProductNode& product);

// Whether fast kernels read an operand (or write a result) with these axes in place: one of its last two is the one of
// neighbours.
bool keepsNeighbours(const Dims& perm);

// Axes in order: the permutation that changes nothing.
Dims identityPerm(std::size_t rank);

}  // namespace stepscope
