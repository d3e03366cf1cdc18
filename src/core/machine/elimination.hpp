#pragma once

#include <cstdint>
#include <span>

#include "machine/scorer.hpp"

namespace polymargin {

/// How pairs of classes are asked, one after the other, until one class is left.
enum class Elimination {
    dag,   ///< the first against the last of the classes that are left (Platt, Cristianini & Shawe-Taylor 2000)
    adag,  ///< rounds: first against last, second against second-last, ..., winners in the order of their matches
};

/// How far off scores may be: `min(unit * (size * masses[p] + |intercepts[p]|), largest)` for a row whose kernel values
/// have rounding of this size.
struct ScoreErrors {
    double unit = 0.0;
    std::span<const double> masses;
    double largest = 0.0;
};

/// Whether the scores are all pairs (0,1), (0,2), ..., (1,2), ... of classes whose vectors stand together, the
/// coefficient of a vector of class i against class j at row j - 1 for j > i and at row j for j < i.
[[nodiscard]] bool scores_all_pairs(const ScoringModel& model);

/// Write the class that is left for each row, and to `uncertain` whether a pair that was asked could have answered
/// otherwise within its error. A positive value keeps the first class of a pair. Each row costs its kernel values, as
/// every class is asked about, and k - 1 products over the vectors of two classes instead of k (k - 1) / 2.
/// Throws std::invalid_argument unless `scores_all_pairs`.
void eliminate(const Scorer& scorer, const DataView& data, std::span<const Index> rows, Elimination rule,
               const ScoreErrors& errors, const ScoreOptions& options, std::span<Index> classes,
               std::span<std::uint8_t> uncertain, const Blas& blas, const Control& control);

}  // namespace polymargin
