#pragma once

// The member functions of `BinaryTask` that read kernel rows: into the dense block, and into the gradient; included by
// its source alone.

#include <algorithm>

#include "solver/accumulate.hpp"
#include "solver/binary_task.hpp"

namespace polymargin {

template <class Real>
void BinaryTask<Real>::close_tables(GramStore<Real>& store) {
    for (std::size_t a = 0; a < tables_.size(); ++a) {
        for (std::size_t b = 0; b < tables_.size(); ++b) {
            if (a != b) store.close(*tables_[a][b]);
        }
    }
}

template <class Real>
void BinaryTask<Real>::request_rows(
    const std::function<void(const Table<Real>&, std::span<const Index>)>& request) const {
    std::vector<Index> rows;
    const auto request_of_each = [&](auto&& each) {
        for (std::size_t a = 0; a < tables_.size(); ++a) {
            rows.clear();
            each([&](Index t) {
                if (segment_of(t) == a) rows.push_back(global_of(t));
            });
            for (const auto& table : tables_[a]) request(table, rows);
        }
    };
    if (!pending_.empty()) {
        request_of_each([&](auto&& take) {
            for (std::size_t i = 0; i < pending_batch(); ++i) take(pending_[pending_.size() - 1 - i].first);
        });
    } else {
        request_of_each([&](auto&& take) {
            for (const Index t : working_.members()) take(t);
        });
    }
}

template <class Real>
bool BinaryTask<Real>::has_rows() const {
    if (!pending_.empty()) return false;
    return std::ranges::all_of(working_.added(), [this](Index s) {
        const Index t = working_.members()[s];
        const auto& tables = tables_[segment_of(t)];
        const Index g = global_of(t);
        return std::all_of(tables.begin(), tables.end(), [g](const auto& table) { return table->row(g) != nullptr; });
    });
}

/// Bring the dense block up to date: the kernel of the variables that came in, the state of all.
template <class Real>
void BinaryTask<Real>::load_block() {
    const Index q = working_.size();
    const auto added = working_.added();
    columns_.resize(q);
    for (const Index s : added) {
        const Index t = working_.members()[s];
        const std::size_t segment = segment_of(t);
        columns_[s] = {segment, t - offsets_[segment]};
    }
    if (has_all()) {
        if (!added.empty()) {
            block_.resize_empty(q, working_.capacity(), [this](Index t) { return fetch_row(t); });
            load_diagonal();
        }
        for (const Run& run : runs_) {
            for (Index t = run.local; t < run.local + run.size; ++t) load_variable(t, t, run);
        }
        return load_ridge();
    }
    block_.resize(q, working_.capacity());
    for (Index s = 0; s < q; ++s) load_variable(s, working_.members()[s], run_of(working_.members()[s]));
    // The kernel is symmetric: the rows of the newcomers give their columns too. A group at a time, because the columns
    // of neighbouring slots share cache lines.
    constexpr std::size_t group = 16;
    for (std::size_t start = 0; start < added.size(); start += group) {
        load_columns(added.subspan(start, std::min(group, added.size() - start)));
    }
    load_ridge();
}

/// The ridge of all variables, which may be another one than last time, beside the rows.
template <class Real>
void BinaryTask<Real>::load_ridge() {
    block_.ridge.clear();
    if (!problem_.squared) return;
    for (Index s = 0; s < working_.size(); ++s) {
        const auto [segment, place] = columns_[s];
        const Index t = working_.members()[s];
        block_.ridge.push_back(ridge_[t]);
        block_.diagonal.data()[s] =
            static_cast<Real>(tables_[segment][segment]->row(global_of(t))[place] + block_.ridge.back());
    }
}

template <class Real>
void BinaryTask<Real>::load_variable(Index slot, Index local, const Run& run) {
    const double bound = cost_bounds_[run.global + local - run.local];
    block_.beta.data()[slot] = state_.beta[local];
    block_.f.data()[slot] = static_cast<Real>(state_.f[local]);
    block_.lower.data()[slot] = run.sign > 0 ? 0.0 : -bound;
    block_.upper.data()[slot] = run.sign > 0 ? bound : 0.0;
}

/// All examples are in the block, in their order: a row is that of the tables, where it is in one piece or copied
/// together when a step asks for it.
template <class Real>
const Real* BinaryTask<Real>::fetch_row(Index t) {
    const auto& tables = tables_[columns_[t].segment];
    const Index g = global_of(t);
    if (tables.size() == 1 && tables.front()->filled_up()) return tables.front()->row(g);
    if (!block_.kernel) block_.kernel = Buffer<Real>(working_.capacity() * block_.stride);
    Real* row = block_.own_row(t);
    for (std::size_t b = 0; b < offsets_.size(); ++b) {
        std::copy_n(tables[b]->row(g), segments_[b].size(), row + offsets_[b]);
    }
    std::fill(row + block_.size, row + block_.width, Real(0));
    return row;
}

template <class Real>
void BinaryTask<Real>::load_diagonal() {
    for (Index t = 0; t < problem_.size(); ++t) {
        const auto [segment, place] = columns_[t];
        block_.diagonal.data()[t] = tables_[segment][segment]->row(global_of(t))[place];
    }
}

template <class Real>
void BinaryTask<Real>::load_columns(std::span<const Index> slots) {
    const auto members = working_.members();
    const Index q = working_.size();
    std::vector<const Real*> values(offsets_.size());
    for (const Index s : slots) {
        const auto& tables = tables_[columns_[s].segment];
        const Index g = global_of(members[s]);
        for (std::size_t b = 0; b < values.size(); ++b) values[b] = tables[b]->row(g);
        Real* row = block_.kernel.data() + s * block_.stride;
        for (Index u = 0; u < q; ++u) row[u] = values[columns_[u].segment][columns_[u].place];
        block_.diagonal.data()[s] = row[s];
    }
    for (Index u = 0; u < q; ++u) {
        Real* row = block_.kernel.data() + u * block_.stride;
        for (const Index s : slots) row[s] = block_.kernel.data()[s * block_.stride + u];
    }
}

template <class Real>
void BinaryTask<Real>::add_to_gradient(std::span<const Index> locals, std::span<const double> change) {
    std::vector<const Real*> rows(locals.size());
    for (std::size_t b = 0; b < offsets_.size(); ++b) {
        for (std::size_t i = 0; i < locals.size(); ++i) {
            rows[i] = tables_[segment_of(locals[i])][b]->row(global_of(locals[i]));
        }
        accumulate<Real>(rows, change, state_.f.data() + offsets_[b], segments_[b].size());
    }
    for (std::size_t i = 0; i < locals.size() && problem_.squared; ++i) {
        state_.f[locals[i]] += ridge_[locals[i]] * change[i];
    }
}

}  // namespace polymargin
