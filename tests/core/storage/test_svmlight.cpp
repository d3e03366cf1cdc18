#include "storage/svmlight.hpp"

#include <limits>
#include <string>

#include "check.hpp"

using namespace polymargin;

namespace {

SparseExamples read(std::string_view text, bool zero_based = false, std::size_t piece = std::string_view::npos) {
    SvmlightReader reader(zero_based);
    for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) reader.feed(text.substr(0, piece));
    return reader.finish();
}

std::vector<Index> wide(const std::variant<std::vector<std::int32_t>, std::vector<Index>>& numbers) {
    return std::visit([](const auto& some) { return std::vector<Index>(some.begin(), some.end()); }, numbers);
}

double value_of(const std::string& text) {
    return read("1 1:" + text).values.at(0);
}

}  // namespace

TEST(a_text_is_the_same_in_any_pieces) {
    const std::string_view text = "1 1:0.5 3:-2e3 # a remark\r\n\n# nothing\n-1\t2:1\n+2 qid:7 4:.25\n3";
    for (const std::size_t piece : {1, 2, 3, 7, 1000}) {
        const SparseExamples all = read(text, false, piece);
        CHECK(all.labels == std::vector<double>{1, -1, 2, 3});
        CHECK(wide(all.row_starts) == std::vector<Index>{0, 2, 3, 4, 4});
        CHECK(wide(all.columns) == std::vector<Index>{0, 2, 1, 3});
        CHECK(all.values == std::vector<double>{0.5, -2000, 1, 0.25});
        CHECK(all.features == 4);
    }
}

TEST(numbers_are_those_that_their_texts_name) {
    CHECK(value_of("0.1") == 0.1);
    CHECK(value_of("-0") == 0.0);
    CHECK(value_of("+.5") == 0.5);
    CHECK(value_of("999999999999999") == 999999999999999.0);
    CHECK(value_of("1234567890123456789") == 1234567890123456789.0);
    CHECK(value_of("1.7976931348623157e308") == std::numeric_limits<double>::max());
    CHECK(value_of("4.9406564584124654e-324") == std::numeric_limits<double>::denorm_min());
    CHECK(value_of("1e-999") == 0.0);
    CHECK(value_of("0." + std::string(400, '0') + "1") == 0.0);
}

TEST(indices_are_as_wide_as_they_need_to_be) {
    CHECK(std::holds_alternative<std::vector<std::int32_t>>(read("1 2147483647:1").columns));
    const SparseExamples far = read("1 1:5\n2 4611686018427387904:1\n");
    CHECK(std::holds_alternative<std::vector<Index>>(far.columns));
    CHECK(std::holds_alternative<std::vector<Index>>(far.row_starts));
    CHECK(far.features == Index{1} << 62);
    CHECK(read("1 0:1 5:2", true).features == 6);
}

TEST(pieces_of_both_widths_are_put_together) {
    std::string text;
    for (int i = 0; i < 200'000; ++i) text += "1 1:1 2:2 3:3\n";
    text += "2 5000000000:4\n";
    const SparseExamples all = read(text, false, 1 << 16);
    CHECK(all.values.size() == 600'001 && all.labels.size() == 200'001);
    CHECK(wide(all.columns)[599'999] == 2 && wide(all.columns)[600'000] == 4'999'999'999);
    CHECK(wide(all.row_starts).back() == 600'001);
}

TEST(nothing_and_a_byte_order_mark) {
    CHECK(read("").labels.empty());
    CHECK(read("# only\n\n").labels.empty());
    CHECK(read("\xef\xbb\xbf"
               "1 1:2\n")
              .labels.size() == 1);
}

TEST(what_is_wrong_is_named_by_line_and_column) {
    CHECK_THROWS(TextError, "line 2, column 3: expected an index from 1 to 2^62", read("1 1:1\n2 0:1\n"));
    CHECK_THROWS(TextError, "line 1, column 7: expected an index from 3", read("1 2:1 2:1"));
    CHECK_THROWS(TextError, "column 3: expected an index", read("1 99999999999999999999:1"));
    CHECK_THROWS(TextError, "column 3: expected an index", read("1 -1:1"));
    CHECK_THROWS(TextError, "column 1: expected a label before the features, got '1:2'", read("1:2 2:3"));
    CHECK_THROWS(TextError, "column 1: expected one label, not several", read("1,2 2:3"));
    for (const char* label : {"x", "nan", "inf", "1e999", "0x10", "--1", "+-1", "+", "1_0"}) {
        CHECK_THROWS(TextError, "line 1, column 1: expected a label", read(label));
    }
    for (const char* feature :
         {"1:", "1:nan", "1:inf", "1:1e999", "1:-", "1:0x1p3", ":1", "1", "1:2:3", "a:1", "1: 2"}) {
        CHECK_THROWS(TextError, "line 1, column 3: expected index:value", read("1 " + std::string(feature)));
    }
    CHECK_THROWS(TextError, "got '1:\\x00\\xff'", read(std::string_view("1 1:\0\xff", 6)));
    CHECK_THROWS(TextError, "xxx...'", read(std::string(1000, 'x')));
}
