#include "kernel/data.hpp"

#include <stdexcept>
#include <vector>

#include "check.hpp"

using namespace polymargin;

namespace {

template <class Column, class Start>
void check_as(std::vector<Column> columns, std::vector<Start> starts, Index stored, Index rows, Index features) {
    check_structure(std::span<const Column>(columns), std::span<const Start>(starts), stored, rows, features);
}

/// All four combinations of index types must agree.
void check_all(const std::vector<int>& columns, const std::vector<int>& starts, Index stored, Index rows,
               Index features, const char* complaint = nullptr) {
    using I32 = std::int32_t;
    using I64 = std::int64_t;
    const std::vector<I32> c32(columns.begin(), columns.end()), s32(starts.begin(), starts.end());
    const std::vector<I64> c64(columns.begin(), columns.end()), s64(starts.begin(), starts.end());
    const auto each = [&](auto&& check) {
        check([&] { check_as<I32, I32>(c32, s32, stored, rows, features); });
        check([&] { check_as<I32, I64>(c32, s64, stored, rows, features); });
        check([&] { check_as<I64, I32>(c64, s32, stored, rows, features); });
        check([&] { check_as<I64, I64>(c64, s64, stored, rows, features); });
    };
    each([&](auto&& call) {
        if (complaint == nullptr) {
            call();
        } else {
            CHECK_THROWS(std::invalid_argument, complaint, call());
        }
    });
}

}  // namespace

TEST(sound_matrices_pass) {
    check_all({0, 2, 1}, {0, 2, 2, 3}, 3, 3, 3);
    check_all({}, {0}, 0, 0, 5);
    check_all({}, {0, 0, 0}, 0, 2, 0);
    check_all({2, 0, 1}, {0, 3}, 3, 1, 3);  // columns need not be sorted
}

TEST(entries_beyond_the_last_row_are_not_read) {
    check_all({0, 99}, {0, 1}, 2, 1, 3);
}

TEST(arrays_of_different_lengths_are_refused) {
    check_all({0, 1}, {0, 2}, 3, 1, 3, "CSR indices has 2 entries, data has 3");
}

TEST(row_starts_are_checked) {
    check_all({0, 1}, {0, 2}, 2, 2, 3, "indptr has 2 entries; a matrix of 2 rows needs 3");
    check_all({}, {}, 0, 0, 3, "indptr has 0 entries");
    check_all({0, 1}, {1, 2}, 2, 1, 3, "must start at 0, not at 1");
    check_all({0, 1}, {-1, 2}, 2, 1, 3, "must start at 0, not at -1");
    check_all({0, 1, 2}, {0, 2, 1, 3}, 3, 3, 3, "after row 1");
    check_all({0, 1}, {0, 1, 5}, 2, 2, 3, "ends at 5, beyond the 2 stored");
}

TEST(columns_are_checked) {
    check_all({0, 3}, {0, 2}, 2, 1, 3, "CSR index 3 at position 1 is outside [0, 3)");
    check_all({-1, 2}, {0, 2}, 2, 1, 3, "CSR index -1 at position 0");
    check_all({0}, {0, 1}, 1, 1, 0, "outside [0, 0)");
}

TEST(rows_of_every_kind_of_data) {
    const std::vector<double> values(6);
    const std::vector<std::int32_t> indices{0, 0, 0, 0};
    const std::vector<DataView> views{DenseView{std::span(values), 2, 3},
                                      CsrView{std::span(values), std::span(indices), std::span(indices), 3, 9},
                                      PrecomputedView{std::span(values), 1, 6}};
    CHECK(rows_of(views[0]) == 2);
    CHECK(rows_of(views[1]) == 3);
    CHECK(rows_of(views[2]) == 1);
}
