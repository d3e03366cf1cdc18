#include "storage/svmlight.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

namespace polymargin {
namespace {

constexpr Index kMostIndex = Index{1} << 62;
constexpr Index kNarrow = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMostQuoted = 40;
constexpr std::size_t kPiece = std::size_t{1} << 19;  // entries that are kept together
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::size_t kExactDigits = 15;  // so many decimal digits are a double exactly

constexpr bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}
constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// The text in quotes, as Python shows it, with bytes that are no printable ASCII escaped.
std::string quoted(std::string_view text) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string out = "'";
    for (const char c : text.substr(0, kMostQuoted)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7f) {
            out += c;
        } else {
            out += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
        }
    }
    return out + (text.size() > kMostQuoted ? "...'" : "'");
}

/// Whether a decimal number that is no double is too small for one, not too large.
bool vanishes(const std::string& text) {
    return std::strtod(text.c_str(), nullptr) == 0.0;
}

/// Read all of `text` as a finite decimal number.
bool read_number(std::string_view text, double& value) {
    const char* begin = text.data();
    const char* const end = begin + text.size();
    // Most numbers of most files are a few digits.
    if (text.size() <= kExactDigits) {
        Index whole = 0;
        const char* at = begin;
        while (at != end && is_digit(*at)) whole = 10 * whole + (*at++ - '0');
        if (at == end) {
            value = static_cast<double>(whole);
            return at != begin;
        }
    }
    if (*begin == '+') ++begin;  // from_chars knows no plus
    if (begin == end || !(is_digit(*begin) || *begin == '.' || (*begin == '-' && begin == text.data()))) return false;
    const auto result = std::from_chars(begin, end, value);
    if (result.ptr != end || result.ec == std::errc::invalid_argument) return false;
    if (result.ec == std::errc::result_out_of_range) {
        if (!vanishes({begin, end})) return false;
        value = 0.0;
    }
    return std::isfinite(value);
}

/// The words of a line, one after the other.
class Words {
  public:
    Words(std::string_view line, Index number) : line_(line), number_(number) {}

    /// Go to the next word; false at the end of the line or at a comment.
    bool next() {
        while (end_ < line_.size() && is_blank(line_[end_])) ++end_;
        begin_ = end_;
        while (end_ < line_.size() && !is_blank(line_[end_]) && line_[end_] != '#') ++end_;
        return begin_ < end_;
    }
    [[nodiscard]] std::string_view word() const { return line_.substr(begin_, end_ - begin_); }
    [[noreturn]] void refuse(const std::string& message) const {
        throw TextError(number_, static_cast<Index>(begin_) + 1, message + ", got " + quoted(word()));
    }

  private:
    std::string_view line_;
    Index number_;
    std::size_t begin_ = 0, end_ = 0;
};

double label(const Words& words) {
    const std::string_view word = words.word();
    double value = 0.0;
    if (read_number(word, value)) return value;
    if (word.find(':') != std::string_view::npos) words.refuse("expected a label before the features");
    if (word.find(',') != std::string_view::npos) words.refuse("expected one label, not several");
    words.refuse("expected a label, a finite number");
}

bool is_query(std::string_view word) {
    if (!word.starts_with("qid:") || word.size() == 4) return false;
    return std::all_of(word.begin() + 4, word.end(), is_digit);
}

/// Read `index:value`, the index at least `least`; return the index.
Index feature(const Words& words, Index least, double& value) {
    const std::string_view word = words.word();
    const char* const end = word.data() + word.size();
    Index index = 0;
    const auto [at, error] = std::from_chars(word.data(), end, index);
    const bool sound = (error == std::errc() || error == std::errc::result_out_of_range) && at != end && *at == ':' &&
                       at + 1 != end && read_number({at + 1, end}, value);
    if (!sound) words.refuse("expected index:value, a whole and a finite number");
    if (error != std::errc() || index < least || index > kMostIndex) {
        words.refuse("expected an index from " + std::to_string(least) + " to 2^62, for indices ascend");
    }
    return index;
}

}  // namespace

TextError::TextError(Index line, Index column, const std::string& message)
    : std::invalid_argument("line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + message) {}

void SvmlightReader::feed(std::string_view text) {
    const auto first = text.find('\n');
    if (first == std::string_view::npos) {
        unfinished_.append(text);
        return;
    }
    if (!unfinished_.empty()) {
        unfinished_.append(text.substr(0, first));
        read_line(std::exchange(unfinished_, {}));
        text.remove_prefix(first + 1);
    }
    for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
        read_line(text.substr(0, end));
        text.remove_prefix(end + 1);
    }
    unfinished_ = text;
    if (values_.size() >= kPiece) keep_piece();
}

SparseExamples SvmlightReader::finish() {
    if (!unfinished_.empty()) read_line(std::exchange(unfinished_, {}));
    keep_piece();
    SparseExamples all;
    all.labels = std::move(labels_);
    all.features = largest_ + 1;
    if (largest_ < kNarrow && kept_ <= kNarrow) {
        all.columns = joined_columns<std::int32_t>();
        all.row_starts = std::vector<std::int32_t>(row_starts_.begin(), row_starts_.end());
    } else {
        all.columns = joined_columns<Index>();
        all.row_starts = std::move(row_starts_);
    }
    all.values.reserve(static_cast<std::size_t>(kept_));
    for (Piece& piece : pieces_) {
        all.values.insert(all.values.end(), piece.values.begin(), piece.values.end());
        piece.values = {};  // freed at once: the two are never there whole
    }
    return all;
}

void SvmlightReader::read_line(std::string_view line) {
    ++line_;
    if (line_ == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    Words words(line, line_);
    if (!words.next()) return;
    labels_.push_back(label(words));
    bool more = words.next();
    if (more && is_query(words.word())) more = words.next();
    Index least = first_;
    for (; more; more = words.next()) {
        double value = 0.0;
        const Index index = feature(words, least, value);
        columns_.push_back(index - first_);
        values_.push_back(value);
        least = index + 1;
    }
    largest_ = std::max(largest_, least - 1 - first_);
    row_starts_.push_back(kept_ + static_cast<Index>(values_.size()));
}

void SvmlightReader::keep_piece() {
    Piece piece;
    piece.values.assign(values_.begin(), values_.end());
    if (largest_ < kNarrow) {
        piece.columns = std::vector<std::int32_t>(columns_.begin(), columns_.end());
    } else {
        piece.columns = columns_;
    }
    kept_ += static_cast<Index>(values_.size());
    pieces_.push_back(std::move(piece));
    columns_.clear();
    values_.clear();
}

template <class Number>
std::vector<Number> SvmlightReader::joined_columns() {
    std::vector<Number> all;
    all.reserve(static_cast<std::size_t>(kept_));
    for (Piece& piece : pieces_) {
        std::visit([&](const auto& columns) { all.insert(all.end(), columns.begin(), columns.end()); }, piece.columns);
        piece.columns = {};
    }
    return all;
}

}  // namespace polymargin
