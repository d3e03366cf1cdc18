#include "kernel/gram.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

namespace polymargin {
namespace {

/// Rows of one matrix product: enough for the product to run at full speed, few enough to share among threads.
constexpr Index kRowTile = 128;
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
    for (auto& row : table.owned_) {
        if (row) used_ -= row_bytes(table);
        row = {};
    }
    if (!table.owned_.empty()) std::fill(table.present_.begin(), table.present_.end(), nullptr);
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
    struct Block {
        const RowTable<Real>* table;
        std::span<const Index> rows;
        Range columns;
    };
    Index bytes = 0;
    for (const auto& m : missing_) bytes += static_cast<Index>(m.rows.size()) * row_bytes(*m.table);
    make_room(bytes);
    for (auto& m : missing_) {
        for (const Index g : m.rows) {
            auto& buffer = m.table->owned_[g - m.table->rows_.begin];
            buffer = Buffer<Real>(padded<Real>(m.table->columns_.size()));
            m.table->present_[g - m.table->rows_.begin] = buffer.data();
        }
        used_ += static_cast<Index>(m.rows.size()) * row_bytes(*m.table);
        evaluations_ += static_cast<Index>(m.rows.size()) * m.table->columns_.size();
    }
    std::vector<Block> blocks;
    for (const auto& m : missing_) {
        const auto count = static_cast<Index>(m.rows.size());
        for (Index r = 0; r < count; r += kRowTile) {
            const auto rows = std::span(m.rows).subspan(r, std::min(kRowTile, count - r));
            for (Index c = m.table->columns_.begin; c < m.table->columns_.end; c += KernelEngine<Real>::kTile) {
                blocks.push_back({m.table.get(), rows,
                                  {c, std::min(m.table->columns_.end, c + KernelEngine<Real>::kTile)}});
            }
        }
    }
    pool_.for_each(static_cast<Index>(blocks.size()), [&](Index task) {
        if (control_.stop_requested()) return;
        const Block& block = blocks[task];
        const Index offset = block.columns.begin - block.table->columns_.begin;
        std::vector<Real*> out;
        for (const Index g : block.rows) {
            out.push_back(block.table->present_[g - block.table->rows_.begin] + offset);
        }
        engine_.block(block.rows, block.columns, out);
    });
    missing_.clear();
    ++round_;
    return !control_.stop_requested();
}

template class RowTable<float>;
template class RowTable<double>;
template class GramStore<float>;
template class GramStore<double>;

}  // namespace polymargin
