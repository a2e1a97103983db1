// SPDX-License-Identifier: GPL-3.0-or-later
// Quantities (by engine/snapshot/units.h) and names as text of the window. Input is bytes, nanoseconds and elements; a time
// or size below 0 is one that is not known, "–".
#pragma once

#include <QFontMetrics>
#include <QString>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stepscope::format {

// "123 ns", "44.7 µs", "5.41 ms", "12.34 s", "1:23.4": three significant digits, the unit picked by size.
QString time(std::int64_t ns);
// "44,712 ns": for tooltips and copying.
QString timeExact(std::int64_t ns);
// "768 B", "192 KiB", "6.0 MiB", "1.25 GiB".
QString bytes(std::int64_t bytes);
// "755 MiB", "2.8GiB", "1048576": what options of kind "bytes" take; nothing when it is no size.
std::optional<qint64> bytesOf(const QString& text);
// A text from the engine with its "196608 bytes" as "192 KiB".
QString bytesWithin(QString text);
// "196,608 bytes".
QString bytesExact(std::int64_t bytes);
// "1,284".
QString count(std::int64_t n);
// "1.2 k", "3.4 M": where room is short.
QString countShort(double n);
// "12.3 GFLOP/s" from operations and nanoseconds; empty when either is 0.
QString flopRate(double flops, std::int64_t ns);
// Significant digits with a real minus sign: "−2.142e−4", "0.02758", "5.834", "NaN", "∞".
QString number(double x, int significant = 5);
// All digits a double needs: for tooltips and copying ("." and "-" whatever the locale).
QString numberExact(double x);
// Differences with their sign: "+1.24 ms", "−3.0 KiB", "+8.2 %" of `from`; the percentage is empty when `from` is 0.
QString timeDifference(std::int64_t ns);
QString bytesDifference(std::int64_t bytes);
QString change(double from, double to);
// "12 %" of a whole; empty when the whole is 0.
QString percent(double part, double whole);
// "2 × 128 × 768"; "scalar" when there are no dims.
QString shape(const std::vector<std::int64_t>& dims);
QString shape(const std::vector<std::string>& dims);
template <typename Repeated>
QString shapeOf(const Repeated& dims) {
  using T = typename Repeated::value_type;
  return shape(std::vector<T>(dims.begin(), dims.end()));
}

// A name from a file as harmless text: control and bidi characters become visible "⟨U+202E⟩", newlines become "⏎".
QString visible(const std::string& name);
QString visible(const QString& name);
// Elided to at most `width` pixels. A name keeps its beginning and whole words of its end, "SoftmaxCross…LossGrad",
// "h.1…proj"; a sentence, or a word that has no room next to anything, its beginning.
QString elided(const QString& text, const QFontMetrics& metrics, int width);
// The same for words measured in other ways: `wide` tells how wide a text is.
QString elided(const QString& text, const std::function<double(const QString&)>& wide, double width);
// A name with a path in front of it: the name stays whole as long as it has room, "/h.0/at…/Softmax_output_0".
QString elidedPath(const QString& text, const QFontMetrics& metrics, int width);

}  // namespace stepscope::format
