#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "storage/svmlight.hpp"

using namespace polymargin;

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

/// What a text has, fed in pieces of one size; nothing if it is refused.
std::optional<SparseExamples> read(std::string_view text, bool zero_based, std::size_t piece) {
    try {
        SvmlightReader reader(zero_based);
        for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) reader.feed(text.substr(0, piece));
        return reader.finish();
    } catch (const TextError&) {
        return std::nullopt;
    }
}

/// The matrix is sound: starts ascend to the number of values, columns ascend in each row, and all is finite.
void check(const SparseExamples& all) {
    const auto wide = [](const auto& numbers) { return std::vector<Index>(numbers.begin(), numbers.end()); };
    const std::vector<Index> starts = std::visit(wide, all.row_starts), columns = std::visit(wide, all.columns);
    require(starts.size() == all.labels.size() + 1 && starts.front() == 0);
    require(starts.back() == static_cast<Index>(all.values.size()) && columns.size() == all.values.size());
    for (std::size_t row = 0; row < all.labels.size(); ++row) {
        require(std::isfinite(all.labels[row]) && starts[row] <= starts[row + 1]);
        Index least = 0;
        for (Index at = starts[row]; at < starts[row + 1]; ++at) {
            require(columns[at] >= least && columns[at] < all.features && std::isfinite(all.values[at]));
            least = columns[at] + 1;
        }
    }
}

}  // namespace

/// The first byte says in which pieces the rest is fed; whole or in pieces, it must be the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    const bool zero_based = (data[0] & 1) != 0;
    const auto whole = read(text, zero_based, size);
    const auto pieces = read(text, zero_based, 1 + data[0] / 2);
    require(whole.has_value() == pieces.has_value());
    if (!whole) return 0;
    check(*whole);
    require(whole->labels == pieces->labels && whole->values == pieces->values && whole->columns == pieces->columns);
    return 0;
}
