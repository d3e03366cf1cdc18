#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "support/types.hpp"

namespace polymargin {

/// The rows of dual coefficients of many examples, of which few numbers are not zero: with many classes an example is
/// confused with a few of them only.
class Coefficients {
  public:
    struct Entry {
        std::int32_t column;
        double value;
    };

    explicit Coefficients(Index rows) : places_(rows) {}
    /// Rows with so many entries each, to be written by `entries`.
    explicit Coefficients(std::span<const std::int32_t> counts) : places_(counts.size()) {
        for (std::size_t i = 0; i < counts.size(); ++i) {
            places_[i] = {.start = used_, .count = counts[i], .capacity = counts[i]};
            used_ += counts[i];
        }
        entries_.resize(used_);
    }

    [[nodiscard]] Index rows() const { return std::ssize(places_); }
    [[nodiscard]] std::span<const Entry> row(Index i) const {
        return {entries_.data() + places_[i].start, static_cast<std::size_t>(places_[i].count)};
    }
    [[nodiscard]] std::span<Entry> entries(Index i) {
        return {entries_.data() + places_[i].start, static_cast<std::size_t>(places_[i].count)};
    }
    /// Bring a row into the cache, in two steps, before its turn comes.
    void announce(Index i) const { __builtin_prefetch(&places_[i]); }
    void fetch(Index i) const { __builtin_prefetch(entries_.data() + places_[i].start); }
    /// Replace a row.
    void set(Index i, std::span<const Entry> row) {
        Place& place = places_[i];
        const auto count = static_cast<std::int32_t>(row.size());
        if (count > place.capacity) {
            used_ -= place.capacity;
            place.start = std::ssize(entries_);
            place.capacity = place.capacity == 0 ? count : count + count / 2;
            used_ += place.capacity;
            entries_.resize(entries_.size() + place.capacity);
        }
        std::copy(row.begin(), row.end(), entries_.begin() + place.start);
        place.count = count;
        if (std::ssize(entries_) > 2 * used_ + kSlack) compact();
    }

  private:
    struct Place {
        Index start = 0;
        std::int32_t count = 0;
        std::int32_t capacity = 0;
    };
    static constexpr Index kSlack = 1 << 16;

    /// Rows that grew have left holes.
    void compact() {
        std::vector<Entry> kept;
        kept.reserve(used_ + kSlack);
        for (Place& place : places_) {
            const auto from = row(&place - places_.data());
            const Index start = std::ssize(kept);
            kept.insert(kept.end(), from.begin(), from.end());
            kept.resize(start + place.capacity);
            place.start = start;
        }
        entries_ = std::move(kept);
    }

    std::vector<Place> places_;
    std::vector<Entry> entries_;
    Index used_ = 0;
};

}  // namespace polymargin
