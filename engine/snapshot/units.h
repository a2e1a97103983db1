// Quantities as text, in one form wherever somebody reads them: window, terminal, reports, messages. Input is nanoseconds,
// bytes and elements; programs read those, not this text. Views, storage and command line may all include this folder and
// no other, so the one formatter is here.
#pragma once

#include <cstdint>
#include <string>

namespace stepscope::units {

// "123 ns", "44.7 µs", "5.41 ms", "12.34 s", from a minute on "1:23.4": three significant digits, the unit by size.
std::string time(double ns);
std::string time(std::int64_t ns);
std::string timeExact(double ns);  // "44,712 ns"
// "768 B", "192 KiB", "6.00 MiB", "1.25 GiB"
std::string bytes(double bytes);
std::string bytes(std::int64_t bytes);
std::string bytesExact(std::int64_t bytes);  // "196,608 bytes"
std::string count(std::int64_t n);           // "1,284", "−1,284"
std::string countShort(double n);            // "1.2", "3.40 M": where room is short
// "12.3 GFLOP/s", "12.3 GB/s" from an amount and the nanoseconds it took; empty when one of them is not above 0.
std::string flopRate(double flops, double ns);
std::string byteRate(double bytes, double ns);
// `significant` digits, from a million or below a thousandth as "2.142e−4"; "NaN", "∞".
std::string number(double x, int significant = 5);
std::string numberShort(double x, int significant = 5);  // the same without zeros at its end: "0.6", "6e−5"
// What is formatted with {fmt}: a NaN has no sign, whatever its bits say.
double signless(double x);
// 0.1234 → "12.3 %"; "<0.1 %" for a little more than nothing.
std::string percent(double ratio);
// With their sign: "+1.24 ms", "−3.00 KiB", "+8.2 %" of `from`; the last is empty when `from` is 0, or not finite.
std::string timeDifference(double ns);
std::string bytesDifference(double bytes);
std::string change(double from, double to);

}  // namespace stepscope::units
