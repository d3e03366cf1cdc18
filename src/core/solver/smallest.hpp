#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "support/types.hpp"

namespace polymargin {

/// The examples with the smallest keys so far, at most `count` of them. Room for twice as many, so that the others are
/// thrown out seldom.
class Smallest {
  public:
    /// Only keys below `limit` count.
    Smallest(Index count, double limit) : count_(count), limit_(limit) { kept_.reserve(2 * count); }

    void offer(double key, Index t) {
        if (!(key < limit_)) return;
        kept_.emplace_back(key, t);
        if (std::ssize(kept_) == 2 * count_) shorten();
    }
    void append_to(std::vector<Index>& out) {
        if (std::ssize(kept_) > count_) shorten();
        for (const auto& [key, t] : kept_) out.push_back(t);
    }

  private:
    void shorten() {
        std::nth_element(kept_.begin(), kept_.begin() + count_ - 1, kept_.end());
        kept_.resize(count_);
        limit_ = kept_.back().first;
    }

    Index count_;
    double limit_;
    std::vector<std::pair<double, Index>> kept_;
};

}  // namespace polymargin
