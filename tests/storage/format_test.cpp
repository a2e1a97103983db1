#include "storage/report/format.h"

#include <gtest/gtest.h>

namespace stepscope::storage {
namespace {

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

TEST(Format, FoldersAreLeftOut) {
  EXPECT_EQ(withoutFolders("/home/somebody/data.npz"), "data.npz");
  EXPECT_EQ(withoutFolders("0.5"), "0.5");
  EXPECT_EQ(withoutOwnDomain("stepscope.Product '/h.1/Add'"), "Product '/h.1/Add'");
  EXPECT_EQ(withoutOwnDomain("com.example.Product 'x'"), "com.example.Product 'x'");
  EXPECT_EQ(fileNameOf("C:\\x\\m.onnx"), "m.onnx");
}

}  // namespace
}  // namespace stepscope::storage
