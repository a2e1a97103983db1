#include "storage/report/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace stepscope::storage {
namespace {

TEST(Format, TimePicksItsUnit) {
  EXPECT_EQ(timeText(0), "0 ns");
  EXPECT_EQ(timeText(123), "123 ns");
  EXPECT_EQ(timeText(1234), "1.23 µs");
  EXPECT_EQ(timeText(123'456), "123.5 µs");
  EXPECT_EQ(timeText(999'990), "1.00 ms");
  EXPECT_EQ(timeText(12'340'000'000), "12.34 s");
}

TEST(Format, BytesPickTheirUnit) {
  EXPECT_EQ(bytesText(0), "0 B");
  EXPECT_EQ(bytesText(1023), "1023 B");
  EXPECT_EQ(bytesText(1024), "1.00 KiB");
  EXPECT_EQ(bytesText(std::int64_t{101} * 1024 * 1024), "101.0 MiB");
  EXPECT_EQ(bytesText(1024 * 1024 - 1), "1.00 MiB");
}

TEST(Format, NumbersAreGroupedAndNamed) {
  EXPECT_EQ(countText(0), "0");
  EXPECT_EQ(countText(1234567), "1,234,567");
  EXPECT_EQ(countText(-123456), "-123,456");
  EXPECT_EQ(countText(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(numberText(std::numeric_limits<double>::quiet_NaN()), "NaN");
  EXPECT_EQ(numberText(-std::numeric_limits<double>::infinity()), "−∞");
  EXPECT_EQ(percentText(0.0001), "<0.1 %");
}

TEST(Format, MarkupIsEscaped) {
  EXPECT_EQ(html("<script>alert('x')&\"</script>"), "&lt;script&gt;alert(&#39;x&#39;)&amp;&quot;&lt;/script&gt;");
}

TEST(Format, HiddenAndBrokenCharactersAreVisible) {
  EXPECT_EQ(visibleText("a\xE2\x80\xAE"
                        "b"),
            "a⟨U+202E⟩b");
  EXPECT_EQ(visibleText("a\x01z"), "a⟨U+0001⟩z");
  EXPECT_EQ(visibleText("\xff\xfe"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(visibleText("\xed\xa0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(visibleText("µ∞字😀"), "µ∞字😀");
}

TEST(Format, LongNamesAreElidedInTheMiddle) {
  EXPECT_EQ(elided("abcdefghij", 5), "ab…ij");
  EXPECT_EQ(elided("µµµµµµ", 5), "µµ…µµ");
  EXPECT_EQ(elided("abc", 5), "abc");
}

TEST(Format, CsvFollowsRfc4180AndDisarmsFormulas) {
  EXPECT_EQ(csvCell("plain"), "plain");
  EXPECT_EQ(csvCell("a,b"), "\"a,b\"");
  EXPECT_EQ(csvCell("say \"hi\"\n"), "\"say \"\"hi\"\"\n\"");
  EXPECT_EQ(csvCell("=1+1"), "'=1+1");
  EXPECT_EQ(csvCell("\x1b[2J\x7f"), "\\x1b[2J\\x7f");
  EXPECT_EQ(csvCell("@x"), "'@x");
}

TEST(Format, FoldersAreLeftOut) {
  EXPECT_EQ(withoutFolders("/home/somebody/data.npz"), "data.npz");
  EXPECT_EQ(withoutFolders("0.5"), "0.5");
  EXPECT_EQ(withoutOwnDomain("stepscope.Product '/h.1/Add'"), "Product '/h.1/Add'");
  EXPECT_EQ(withoutOwnDomain("com.example.Product 'x'"), "com.example.Product 'x'");
  EXPECT_EQ(fileNameOf("C:\\x\\m.onnx"), "m.onnx");
}

}  // namespace
}  // namespace stepscope::storage
