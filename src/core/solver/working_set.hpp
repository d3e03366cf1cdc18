#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "support/types.hpp"

namespace polymargin {

/// The examples that are optimised together. Each has a slot of a dense block and keeps it until another one needs the
/// place, so that the kernel of a slot is loaded once.
class WorkingSet {
  public:
    WorkingSet(Index examples, Index capacity) : slot_(examples, -1), capacity_(capacity) {}

    [[nodiscard]] Index size() const { return std::ssize(members_); }
    [[nodiscard]] Index capacity() const { return capacity_; }
    /// The example in each slot.
    [[nodiscard]] std::span<const Index> members() const { return members_; }
    /// Slots filled by the last choice.
    [[nodiscard]] std::span<const Index> added() const { return added_; }

    /// All slots in the order of their examples: who reads rows of the kernel in it goes through memory once.
    [[nodiscard]] std::vector<Index> slots_in_order() const {
        std::vector<Index> slots(members_.size());
        std::iota(slots.begin(), slots.end(), Index{0});
        std::ranges::sort(slots, {}, [this](Index s) { return members_[s]; });
        return slots;
    }

    /// Give every example the slot of its number; there must be room for all.
    void take_all() {
        added_.clear();
        if (size() == std::ssize(slot_)) return;
        members_.resize(slot_.size());
        std::iota(members_.begin(), members_.end(), Index{0});
        slot_ = added_ = members_;
    }

    /// Give every wanted example a slot: a new one while there is room, then the slots of examples that are not wanted
    /// and at a vertex, then of any others that are not wanted.
    template <class AtVertex>
    void take_in(std::span<const Index> wanted, AtVertex&& at_vertex) {
        added_.clear();
        std::vector<Index> vacant[2];
        if (size() + std::ssize(wanted) > capacity_) find_vacant(wanted, at_vertex, vacant);
        for (const Index t : wanted) {
            if (slot_[t] >= 0) continue;
            Index s = size();
            if (s < capacity_) {
                members_.push_back(t);
            } else {
                auto& from = vacant[0].empty() ? vacant[1] : vacant[0];
                if (from.empty()) break;
                s = from.back();
                from.pop_back();
                slot_[members_[s]] = -1;
                members_[s] = t;
            }
            slot_[t] = s;
            added_.push_back(s);
        }
    }

  private:
    template <class AtVertex>
    void find_vacant(std::span<const Index> wanted, AtVertex&& at_vertex, std::vector<Index> (&vacant)[2]) const {
        std::vector<char> keep(members_.size(), 0);
        for (const Index t : wanted) {
            if (slot_[t] >= 0) keep[slot_[t]] = 1;
        }
        for (Index s = 0; s < size(); ++s) {
            if (!keep[s]) vacant[at_vertex(members_[s]) ? 0 : 1].push_back(s);
        }
    }

    std::vector<Index> members_;
    std::vector<Index> slot_;  // of each example, -1 if it has none
    std::vector<Index> added_;
    Index capacity_;
};

}  // namespace polymargin
