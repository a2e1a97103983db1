// SPDX-License-Identifier: GPL-3.0-or-later
// The filter language of the instruction list.
//
//   op:MatMul,Gemm  phase:backward  module:h.3*  impl:onednn  in:wte.weight  out:loss      text, * is a wildcard, commas are
//   "or" bytes>1MiB  read>=4k  flops>1e9  time>100us  index<400                                compared numbers with units
//   is:view  is:break  is:ran  is:random                                                  properties
//   -op:Reshape                                                                           a minus in front negates
//   attn                                                                                  any other word: part of the line's
//   text
// Terms are joined by "and". Letter case does not matter.
#pragma once

#include <QRegularExpression>
#include <QString>
#include <QStringList>
#include <vector>

namespace stepscope {

// What one instruction offers to the filter.
struct InstructionFacts {
  QString op, phase, module, implementation, text;
  QStringList inputs, outputs;
  double bytes = 0, read = 0, flops = 0, ns = -1, index = 0;  // ns < 0: never ran
  bool view = false, breakpoint = false, ran = false, random = false;
};

class InstructionFilter {
 public:
  // What was wrong, in words; empty when the text was understood.
  static InstructionFilter parse(const QString& text, QString* error);

  bool matches(const InstructionFacts& facts) const;
  bool empty() const { return terms_.empty(); }

  // For completion and the tooltip.
  static QStringList keys();
  static QString help();

 private:
  enum class Kind { kText, kOp, kPhase, kModule, kImplementation, kIn, kOut, kNumber, kIs };
  struct Term {
    Kind kind = Kind::kText;
    bool negated = false;
    std::vector<QRegularExpression> patterns;  // any of them
    QString word;                              // kText, kIs, and the key of kNumber
    QString comparison;
    double number = 0;
  };

  static bool matches(const Term& term, const InstructionFacts& facts);
  std::vector<Term> terms_;
};

// "1MiB", "4k", "100us", "2.5ms", "1e9" in bytes, nanoseconds or units; false when it is no number.
bool parseQuantity(const QString& text, bool time, double* value);

}  // namespace stepscope
