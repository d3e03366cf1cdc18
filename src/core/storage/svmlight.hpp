#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "support/types.hpp"

namespace polymargin {

/// What is wrong with a text, and where: line and column are counted from 1, columns in bytes.
class TextError : public std::invalid_argument {
  public:
    TextError(Index line, Index column, const std::string& message);
};

/// Examples of a text: labels, and the features as a CSR matrix whose indices are as narrow as they may be.
struct SparseExamples {
    std::vector<double> labels;
    std::variant<std::vector<std::int32_t>, std::vector<Index>> row_starts, columns;  ///< both of one type
    std::vector<double> values;
    Index features = 0;
};

/// A reader of the text format of svmlight and LIBSVM, fed piece by piece.
///
/// A line is a label, perhaps `qid:number`, which is read over, and `index:value` with ascending indices, apart by
/// blanks. From `#` on it is a comment. Lines without anything else do not count. Every number must be finite. The
/// memory taken is that of the examples, once more while they are put together, and one piece of text.
class SvmlightReader {
  public:
    /// The first feature has the index 1, or 0 if `zero_based`.
    explicit SvmlightReader(bool zero_based) : first_(zero_based ? 0 : 1) {}

    /// Read a piece of the text, which may end anywhere. Throws TextError; the reader is then of no more use.
    void feed(std::string_view text);

    /// Read what is left and hand out everything.
    [[nodiscard]] SparseExamples finish();

  private:
    /// What was read from one piece; the columns in 32 bits if they fit.
    struct Piece {
        std::vector<double> values;
        std::variant<std::vector<std::int32_t>, std::vector<Index>> columns;
    };

    void read_line(std::string_view line);
    void keep_piece();
    template <class Number>
    [[nodiscard]] std::vector<Number> joined_columns();

    Index first_;
    Index line_ = 0;
    std::string unfinished_;  ///< the beginning of a line whose end was not fed yet
    std::vector<double> labels_;
    std::vector<Index> row_starts_{0};
    std::vector<Index> columns_;  ///< of the piece under way, with its values
    std::vector<double> values_;
    std::vector<Piece> pieces_;
    Index kept_ = 0;      ///< entries in the pieces
    Index largest_ = -1;  ///< the largest column, counted from 0
};

}  // namespace polymargin
