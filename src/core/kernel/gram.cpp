#include "kernel/gram.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace polymargin {
namespace {

/// Rows of one matrix product: enough for the product to run at full speed, few enough to share among threads.
constexpr Index kRowTile = 256;
constexpr Index kSymmetricTile = 256;

template <class Real>
void mirror(const Real* from, Real* to, Index rows, Index columns, Index stride) {
    constexpr Index strip = 16;
    for (Index r0 = 0; r0 < rows; r0 += strip) {
        const Index r1 = std::min(rows, r0 + strip);
        for (Index c = 0; c < columns; ++c) {
            for (Index r = r0; r < r1; ++r) to[c * stride + r] = from[r * stride + c];
        }
    }
}

}  // namespace

template <class Real>
GramStore<Real>::GramStore(const KernelEngine<Real>& engine, Index budget_bytes, ThreadPool& pool,
                           const Control& control)
    : engine_(engine), budget_(budget_bytes), pool_(pool), control_(control) {}

template <class Real>
void GramStore<Real>::compute_whole() {
    const Index n = size();
    const Index stride = padded<Real>(n);
    matrix_ = Buffer<Real>(n * stride);
    used_ += whole_bytes(n);
    const Index tiles = (n + kSymmetricTile - 1) / kSymmetricTile;
    std::vector<Index> all(n);
    std::iota(all.begin(), all.end(), Index{0});
    // A task is one tile of the upper triangle, so that the work is even.
    std::vector<std::pair<Index, Index>> pairs;
    for (Index a = 0; a < tiles; ++a) {
        for (Index b = a; b < tiles; ++b) pairs.emplace_back(a * kSymmetricTile, b * kSymmetricTile);
    }
    pool_.for_each(static_cast<Index>(pairs.size()), [&](Index task) {
        if (control_.stop_requested()) return;
        const auto [r, c] = pairs[task];
        const Index rows = std::min(kSymmetricTile, n - r);
        const Index columns = std::min(kSymmetricTile, n - c);
        Real* tile = matrix_.data() + r * stride + c;
        std::vector<Real*> out(rows);
        for (Index i = 0; i < rows; ++i) out[i] = tile + i * stride;
        engine_.block(std::span(all).subspan(r, rows), {c, c + columns}, out);
        if (r != c) mirror(tile, matrix_.data() + c * stride + r, rows, columns, stride);
    });
    evaluations_ += n * (n + 1) / 2;
}

template <class Real>
std::shared_ptr<RowTable<Real>> GramStore<Real>::open(Range rows, Range columns) {
    auto table = std::make_shared<RowTable<Real>>();
    table->rows_ = rows;
    table->columns_ = columns;
    table->present_.assign(rows.size(), nullptr);
    if (whole()) {
        const Index stride = padded<Real>(size());
        for (Index g = rows.begin; g < rows.end; ++g) {
            table->present_[g - rows.begin] = matrix_.data() + g * stride + columns.begin;
        }
    } else {
        table->owned_.resize(rows.size());
        table->last_use_.assign(rows.size(), 0);
        std::erase_if(tables_, [](const auto& t) { return t.expired(); });
        tables_.push_back(table);
    }
    return table;
}

template <class Real>
void GramStore<Real>::close(RowTable<Real>& table) {
    if (table.owned_.empty()) return;
    for (auto& row : table.owned_) {
        if (row) spare_[row.size()].push_back(std::move(row));
    }
    std::fill(table.present_.begin(), table.present_.end(), nullptr);
}

/// The memory of a row: that of a row of the same length that nobody needs any more, or new.
template <class Real>
Buffer<Real> GramStore<Real>::take_row(Index length) {
    auto& spare = spare_[length];
    if (spare.empty()) {
        used_ += length * static_cast<Index>(sizeof(Real));
        return Buffer<Real>(length);
    }
    Buffer<Real> row = std::move(spare.back());
    spare.pop_back();
    return row;
}

template <class Real>
void GramStore<Real>::request(const std::shared_ptr<RowTable<Real>>& table, std::span<const Index> rows) {
    if (table->owned_.empty()) return;
    std::vector<Index> absent;
    for (const Index g : rows) {
        auto& last = table->last_use_[g - table->rows_.begin];
        if (last != round_ && !table->row(g)) absent.push_back(g);
        last = round_;
    }
    if (!absent.empty()) missing_.push_back({table, std::move(absent)});
}

template <class Real>
void GramStore<Real>::make_room(Index bytes) {
    if (used_ + bytes <= budget_) return;
    for (auto& [length, rows] : spare_) used_ -= std::ssize(rows) * length * static_cast<Index>(sizeof(Real));
    spare_.clear();
    if (used_ + bytes <= budget_) return;
    struct Candidate {
        std::int64_t last_use;
        RowTable<Real>* table;
        Index slot;
    };
    std::vector<Candidate> old;
    for (const auto& weak : tables_) {
        const auto table = weak.lock();
        if (!table) continue;
        for (Index s = 0; s < table->rows_.size(); ++s) {
            if (table->owned_[s] && table->last_use_[s] != round_) {
                old.push_back({table->last_use_[s], table.get(), s});
            }
        }
    }
    std::stable_sort(old.begin(), old.end(), [](const auto& a, const auto& b) { return a.last_use < b.last_use; });
    // Free a little more than is needed now, so that a full store does not sort at every round.
    const Index goal = budget_ - bytes - budget_ / 16;
    for (const auto& c : old) {
        if (used_ <= goal) break;
        c.table->owned_[c.slot] = {};
        c.table->present_[c.slot] = nullptr;
        used_ -= row_bytes(*c.table);
    }
    if (used_ + bytes > budget_) {
        throw std::invalid_argument("cache_size is too small: one round of this problem needs " +
                                    std::to_string((used_ + bytes) / 1'000'000 + 1) + " MB");
    }
}

template <class Real>
bool GramStore<Real>::fulfil() {
    Index bytes = 0;
    for (const auto& m : missing_) bytes += std::ssize(m.rows) * row_bytes(*m.table);
    make_room(bytes);
    // Rows against the same columns are computed together, whichever table they belong to: the larger the product, the
    // less it costs to bring the columns into the cache.
    struct Group {
        Range columns;
        std::vector<Index> rows;
        std::vector<Real*> out;
    };
    std::vector<Group> groups;
    for (auto& m : missing_) {
        auto group =
            std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.columns == m.table->columns_; });
        if (group == groups.end()) group = groups.insert(groups.end(), Group{m.table->columns_, {}, {}});
        for (const Index g : m.rows) {
            const Index slot = g - m.table->rows_.begin;
            m.table->owned_[slot] = take_row(padded<Real>(m.table->columns_.size()));
            m.table->present_[slot] = m.table->owned_[slot].data();
            group->rows.push_back(g);
            group->out.push_back(m.table->owned_[slot].data());
        }
        evaluations_ += std::ssize(m.rows) * m.table->columns_.size();
    }
    missing_.clear();
    struct Block {
        const Group* group;
        Index first, count;
        Range columns;
    };
    std::vector<Block> blocks;
    for (const Group& g : groups) {
        for (Index r = 0; r < std::ssize(g.rows); r += kRowTile) {
            for (Index c = g.columns.begin; c < g.columns.end; c += KernelEngine<Real>::kTile) {
                blocks.push_back({&g,
                                  r,
                                  std::min(kRowTile, std::ssize(g.rows) - r),
                                  {c, std::min(g.columns.end, c + KernelEngine<Real>::kTile)}});
            }
        }
    }
    pool_.for_each(std::ssize(blocks), [&](Index task) {
        if (control_.stop_requested()) return;
        const auto& [group, first, count, columns] = blocks[task];
        std::vector<Real*> out(group->out.begin() + first, group->out.begin() + first + count);
        for (Real*& row : out) row += columns.begin - group->columns.begin;
        engine_.block(std::span(group->rows).subspan(first, count), columns, out);
    });
    ++round_;
    return !control_.stop_requested();
}

template class RowTable<float>;
template class RowTable<double>;
template class GramStore<float>;
template class GramStore<double>;

}  // namespace polymargin
