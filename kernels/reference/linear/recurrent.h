// What LSTM, GRU and RNN share: shapes, directions, sequence lengths, activations, and the walk over time, forward and back.
//
// A cell computes one step of one sequence; batches and directions are independent. All arithmetic is in double.
// Source     ONNX LSTM-14, GRU-14, RNN-14.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace stepscope::reference {

// One of ONNX's activation functions with its alpha and beta.
struct Activation {
  enum class Kind {
    kRelu,
    kTanh,
    kSigmoid,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus
  };
  Kind kind = Kind::kTanh;
  double alpha = 0, beta = 0;
  double clip = 0;  // 0 = none; else the argument is limited to [-clip, clip]

  double value(double x) const;
  double derivative(double x) const;
};

struct RecurrentShape {
  std::int64_t steps = 0, batch = 0, input = 0, hidden = 0, directions = 1, gates = 1;
  bool batchFirst = false;            // layout 1
  std::vector<bool> reversed;         // per direction
  std::vector<std::int64_t> lengths;  // per batch entry
};

// The operands of one direction and the gradients gathered for them; rows are gates in ONNX's order.
struct RecurrentWeights {
  std::vector<double> w, r, b, p;  // [gates*H, I], [gates*H, H], [2*gates*H], [3*H]
};

// Values of one step that the way back needs. Vectors of H; `gates` of gates*H.
struct RecurrentStep {
  const double* x = nullptr;
  std::vector<double> before, after;  // arguments and results of the gate activations
  std::vector<double> h, c, extra;    // new state; `extra` is the cell's own
};

class RecurrentCell {
 public:
  virtual ~RecurrentCell() = default;
  virtual void forward(const RecurrentShape& s, const RecurrentWeights& w, const double* h, const double* c,
                       RecurrentStep& step) const = 0;
  // dh, dc: gradients of the new state; replaced by those of the previous state (h, c). dx and d are added to.
  virtual void backward(const RecurrentShape& s, const RecurrentWeights& w, const double* h, const double* c,
                        const RecurrentStep& step, std::vector<double>& dh, std::vector<double>& dc, double* dx,
                        RecurrentWeights& d) const = 0;
};

// Reads activations of direction `d`: `perDirection` of them, with defaults by name.
Result<std::vector<Activation>> readActivations(const Attributes& attrs, std::size_t direction,
                                                const std::vector<std::string>& defaults);

// Makes the cell of one direction.
using CellMaker = Result<std::unique_ptr<RecurrentCell>> (*)(const KernelSpec& spec, std::size_t direction);

// Inputs X, W, R, B, sequence_lens, initial_h, initial_c, P; outputs Y, Y_h, Y_c (those a cell has).
Status runRecurrent(const KernelSpec& spec, const KernelCall& call, std::int64_t gates, CellMaker makeCell);
// Inputs dY, dY_h, dY_c (each may be absent), then those of the forward op; outputs dX, dW, dR, dB, dinitial_h, dinitial_c,
// dP.
Status runRecurrentGradient(const KernelSpec& spec, const KernelCall& call, std::int64_t gates, CellMaker makeCell);

// values[i] with the index type of extents.
inline double& at(std::vector<double>& values, std::int64_t i) { return values[static_cast<std::size_t>(i)]; }
inline double at(const std::vector<double>& values, std::int64_t i) { return values[static_cast<std::size_t>(i)]; }

// y += M x,  y += M^T x,  M += a b^T for a row-major [rows, columns] matrix.
void addProduct(const double* matrix, std::int64_t rows, std::int64_t columns, const double* x, double* y);
void addTransposedProduct(const double* matrix, std::int64_t rows, std::int64_t columns, const double* x, double* y);
void addOuter(double* matrix, std::int64_t rows, std::int64_t columns, const double* a, const double* b);

}  // namespace stepscope::reference
