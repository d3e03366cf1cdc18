#include "kernel/gram.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>

namespace polymargin {
namespace {

/// Rows of one matrix product: enough for the product to run at full speed, few enough to share among threads.
constexpr Index kRowTile = 256;
/// What may go into chunks, which are fast but cannot be given to rows of another length. More than this is not faster:
/// the system has to clear room for large pages.
constexpr Index chunk_bytes(Index budget) {
    return std::min<Index>(budget / 4, 64'000'000);
}
constexpr Index kBlockSize = 32768;
constexpr Index kSymmetricTile = 256;

/// A range cut into the fewest parts of at most `most`, nearly equal: no thin rest.
std::vector<Range> even_parts(Range range, Index most) {
    const Index count = (range.size() + most - 1) / most;
    std::vector<Range> parts;
    for (Index p = 0; p < count; ++p) {
        parts.push_back({range.begin + range.size() * p / count, range.begin + range.size() * (p + 1) / count});
    }
    return parts;
}

/// Cut rows against `columns` into blocks for `each(rows, columns)`.
template <class Each>
void for_blocks(Index row_count, Range columns, Each&& each) {
    for (const Range rows : even_parts({0, row_count}, kRowTile)) {
        // Few rows allow many columns: what counts is that the products of a block stay in the cache.
        const Index most_columns = std::clamp<Index>(kBlockSize / rows.size(), 128, 2048);
        for (const Range part : even_parts(columns, most_columns)) each(rows, part);
    }
}

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
    : engine_(engine), budget_(budget_bytes), pool_(&pool), control_(&control), memory_(chunk_bytes(budget_bytes)) {}

template <class Real>
Index GramStore<Real>::capacity(Index length) const {
    // What is in chunks may be of the wrong length, and a store that is always full would evict at every round.
    const Index rows = unused_bytes() + memory_.bytes();
    const Index available = rows - rows / 8 - chunk_bytes(budget_);
    return available / (RowMemory<Real>::fitting(length) * static_cast<Index>(sizeof(Real)));
}

template <class Real>
void GramStore<Real>::clear() {
    shared_.clear();
    tables_.clear();
    missing_.clear();
    squares_.clear();
    square_values_.clear();
    memory_ = RowMemory<Real>(chunk_bytes(budget_));
    overflowed_ = false;
}

template <class Real>
void GramStore<Real>::compute_squares(std::span<const Range> ranges) {
    // A task is one tile of an upper triangle, so that the work is even.
    struct Tile {
        Range square;
        Real* values;
        Range rows, columns;
    };
    Index entries = 0;
    for (const Range range : ranges) entries += range.size() * whole_steps<Real>(range.size());
    std::vector<Tile> tiles;
    Real* values = square_values_.emplace_back(entries).data();
    for (const Range range : ranges) {
        const Index stride = whole_steps<Real>(range.size());
        squares_.push_back({range, stride, values});
        const auto parts = even_parts(range, kSymmetricTile);
        for (std::size_t r = 0; r < parts.size(); ++r) {
            for (std::size_t c = r; c < parts.size(); ++c) tiles.push_back({range, values, parts[r], parts[c]});
        }
        values += range.size() * stride;
        evaluations_ += range.size() * (range.size() + 1) / 2;
    }
    std::vector<Index> all(size());
    std::iota(all.begin(), all.end(), Index{0});
    pool_->for_each(std::ssize(tiles), [&](Index task) {
        if (control_->stop_requested()) return;
        const auto& [square, first, rows, columns] = tiles[task];
        const Index stride = whole_steps<Real>(square.size());
        const auto at = [&, first = first, begin = square.begin](Index r, Index c) {
            return first + (r - begin) * stride + c - begin;
        };
        std::vector<Real*> out(rows.size());
        for (Index i = 0; i < rows.size(); ++i) out[i] = at(rows.begin + i, columns.begin);
        engine_.block(std::span(all).subspan(rows.begin, rows.size()), columns, out);
        if (rows.begin != columns.begin) {
            mirror(at(rows.begin, columns.begin), at(columns.begin, rows.begin), rows.size(), columns.size(), stride);
        }
        if (columns.end == square.end) {
            for (Index r = rows.begin; r < rows.end; ++r)
                std::fill_n(at(r, square.end), stride - square.size(), Real(0));
        }
    });
}

template <class Real>
void GramStore<Real>::adopt_whole(const Real* values) {
    clear();
    squares_.push_back({{0, size()}, size(), values});
}

template <class Real>
void GramStore<Real>::copy_whole(const GramStore& from, std::span<const Index> members) {
    const Index count = std::ssize(members), stride = whole_steps<Real>(count);
    const Square& source = from.squares_.front();
    clear();
    Real* values = square_values_.emplace_back(count * stride).data();
    squares_.push_back({{0, count}, stride, values});
    pool_->for_each(count, [&](Index i) {
        const Real* row = source.values + members[i] * source.stride;
        Real* out = values + i * stride;
        for (Index j = 0; j < count; ++j) out[j] = row[members[j]];
        std::fill(out + count, out + stride, Real(0));
    });
}

template <class Real>
auto GramStore<Real>::square_around(Range rows, Range columns) const -> const Square* {
    const auto inside = [](Range part, Range range) { return range.begin <= part.begin && part.end <= range.end; };
    const auto found = std::find_if(squares_.begin(), squares_.end(), [&](const Square& square) {
        return inside(rows, square.range) && inside(columns, square.range);
    });
    return found == squares_.end() ? nullptr : &*found;
}

template <class Real>
std::shared_ptr<RowTable<Real>> GramStore<Real>::open(Range rows, Range columns) {
    auto table = std::make_shared<RowTable<Real>>();
    table->rows_ = rows;
    table->columns_ = columns;
    table->present_.assign(rows.size(), nullptr);
    if (const Square* square = square_around(rows, columns)) {
        const Real* first = square->values + columns.begin - square->range.begin;
        table->filled_up_ = columns == square->range && square->stride % kStep<Real> == 0;
        for (Index g = rows.begin; g < rows.end; ++g) {
            table->present_[g - rows.begin] = first + (g - square->range.begin) * square->stride;
        }
    } else {
        table->last_use_.assign(rows.size(), 0);
        std::erase_if(tables_, [](const auto& t) { return t.expired(); });
        tables_.push_back(table);
    }
    return table;
}

template <class Real>
std::shared_ptr<RowTable<Real>> GramStore<Real>::shared(Range range) {
    auto& table = shared_[{range.begin, range.end}];
    if (table && !table->last_use_.empty() && has_square(range)) {  // a square that came later has all of its rows
        close(*table);
        table.reset();
    }
    if (!table) table = open(range, range);
    return table;
}

template <class Real>
void GramStore<Real>::close(RowTable<Real>& table) {
    if (table.last_use_.empty()) return;
    for (Index slot = 0; slot < table.rows_.size(); ++slot) forget(table, slot);
}

template <class Real>
void GramStore<Real>::forget(RowTable<Real>& table, Index slot) {
    if (table.present_[slot] != nullptr) memory_.give_back(table.present_[slot]);
    table.present_[slot] = nullptr;
}

template <class Real>
void GramStore<Real>::request(const std::shared_ptr<RowTable<Real>>& table, std::span<const Index> rows) {
    if (table->last_use_.empty()) return;
    std::vector<Index> absent;
    for (const Index g : rows) {
        auto& last = table->last_use_[g - table->rows_.begin];
        if (last != round_ && !table->row(g)) absent.push_back(g);
        last = round_;
    }
    if (!absent.empty()) missing_.push_back({table, std::move(absent)});
}

/// New memory that the missing rows need, beyond the rows that wait.
template <class Real>
Index GramStore<Real>::bytes_to_come() const {
    std::map<Index, Index> rows;
    for (const auto& m : missing_) rows[row_length(*m.table)] += std::ssize(m.rows);
    Index entries = 0;
    for (const auto& [length, count] : rows) entries += length * std::max<Index>(0, count - memory_.waiting(length));
    return entries * static_cast<Index>(sizeof(Real));
}

template <class Real>
void GramStore<Real>::evict_rows() {
    const auto fits = [&](Index spare) { return bytes_to_come() + spare <= unused_bytes(); };
    if (fits(0)) return;
    overflowed_ = true;
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
            if (table->present_[s] != nullptr && table->last_use_[s] != round_) {
                old.push_back({table->last_use_[s], table.get(), s});
            }
        }
    }
    std::stable_sort(old.begin(), old.end(), [](const auto& a, const auto& b) { return a.last_use < b.last_use; });
    // Free a little more than is needed now, so that a full store does not sort at every round.
    constexpr std::size_t batch = 16;  // looking whether it is enough takes a while
    for (std::size_t i = 0; i < old.size(); ++i) {
        if (i % batch == 0 && fits(budget_ / 16)) break;
        forget(*old[i].table, old[i].slot);
    }
    if (!fits(0)) {
        throw std::invalid_argument("cache_size is too small: one round of this problem needs " +
                                    std::to_string((memory_.bytes() + bytes_to_come()) / 1'000'000 + 1) + " MB");
    }
}

template <class Real>
bool GramStore<Real>::fulfil() {
    evict_rows();
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
            Real* row = memory_.take(row_length(*m.table));
            m.table->present_[slot] = row;
            group->rows.push_back(g);
            group->out.push_back(row);
        }
        evaluations_ += std::ssize(m.rows) * m.table->columns_.size();
    }
    missing_.clear();
    struct Block {
        const Group* group;
        Range rows;
        Range columns;
    };
    std::vector<Block> blocks;
    for (const Group& g : groups) {
        for_blocks(std::ssize(g.rows), g.columns,
                   [&](Range rows, Range columns) { blocks.push_back({&g, rows, columns}); });
    }
    pool_->for_each(std::ssize(blocks), [&](Index task) {
        if (control_->stop_requested()) return;
        const auto& [group, rows, columns] = blocks[task];
        std::vector<Real*> out(group->out.begin() + rows.begin, group->out.begin() + rows.end);
        for (Real*& row : out) row += columns.begin - group->columns.begin;
        engine_.block(std::span(group->rows).subspan(rows.begin, rows.size()), columns, out);
    });
    ++round_;
    return !control_->stop_requested();
}

template <class Real>
void PrivateRows<Real>::open(Range first, Range second) {
    values_.reserve(bytes(first, second) / static_cast<Index>(sizeof(Real)));
    for (auto& table : tables_) {
        table = std::make_shared<RowTable<Real>>();
        table->rows_ = first;
        table->columns_ = second;
        table->present_.assign(first.size(), nullptr);
        std::swap(first, second);
    }
}

template <class Real>
void PrivateRows<Real>::compute(RowTable<Real>& table, std::span<const Index> rows) {
    const Index stride = padded<Real>(table.columns_.size());
    Real* base = values_.data();
    if (&table == tables_[1].get()) base += tables_[0]->rows_.size() * padded<Real>(tables_[0]->columns_.size());
    std::vector<Index> absent;
    std::vector<Real*> out;
    for (const Index g : rows) {
        const Real*& row = table.present_[g - table.rows_.begin];
        if (row != nullptr) continue;
        absent.push_back(g);
        out.push_back(base + (g - table.rows_.begin) * stride);
        row = out.back();
    }
    if (absent.empty()) return;
    for_blocks(std::ssize(absent), table.columns_, [&](Range part, Range columns) {
        std::vector<Real*> begin(out.begin() + part.begin, out.begin() + part.end);
        for (Real*& row : begin) row += columns.begin - table.columns_.begin;
        engine_.block(std::span(absent).subspan(part.begin, part.size()), columns, begin);
    });
    evaluations_ += std::ssize(absent) * table.columns_.size();
}

template class PrivateRows<float>;
template class PrivateRows<double>;
template class RowTable<float>;
template class RowTable<double>;
template class GramStore<float>;
template class GramStore<double>;

}  // namespace polymargin
