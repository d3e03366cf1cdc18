#include "linear/rows.hpp"

#include <algorithm>
#include <stdexcept>

#include "check.hpp"
#include "fixtures.hpp"
#include "linear/source.hpp"
#include "linear_problems.hpp"

using namespace polymargin;
using fixtures::Csr;
using fixtures::LinearProblem;
using fixtures::Matrix;
using fixtures::Random;

namespace {

/// A dense matrix of floats.
struct Floats {
    std::vector<float> values;
    Index rows, columns;

    explicit Floats(const Matrix& x) : values(x.values.begin(), x.values.end()), rows(x.rows), columns(x.columns) {}
    [[nodiscard]] DenseView view() const { return {std::span(values), rows, columns}; }
};

/// The rows in the caller's numbering of the features.
template <class Real>
Matrix unpacked(const LinearRows<Real>& rows) {
    Matrix x(rows.size(), rows.features());
    for (Index i = 0; i < rows.size(); ++i) {
        rows.announce(i);
        rows.fetch(i);
        const Row<Real> row = rows.row(i);
        CHECK((row.columns == nullptr) == rows.dense());
        CHECK(rows.dense() ? row.count == rows.features() : row.count <= rows.features());
        for (Index p = 0; p < row.count; ++p) {
            const Index f = rows.original_features()[row.columns == nullptr ? p : row.columns[p]];
            CHECK(x.at(i, f) == 0.0);
            CHECK(rows.dense() || row.values[p] != Real(0));
            x.at(i, f) = static_cast<double>(row.values[p]);
        }
    }
    return x;
}

/// All of `rows` is as `x` has it, whose values are floats.
template <class Real>
void check_rows(const LinearRows<Real>& rows, const Matrix& x, std::span<const Index> order, bool dense) {
    CHECK(rows.dense() == dense);
    CHECK(rows.size() == std::ssize(order) && rows.features() == x.columns);
    const Matrix found = unpacked(rows);
    std::vector<Index> occurrences(x.columns, 0);
    for (Index i = 0; i < rows.size(); ++i) {
        CHECK(std::ranges::equal(found.row(i), x.row(order[i])));
        double norm = 0.0;
        for (Index f = 0; f < x.columns; ++f) {
            norm += x.at(order[i], f) * x.at(order[i], f);
            occurrences[f] += x.at(order[i], f) != 0.0;
        }
        CHECK_CLOSE(rows.norm(i), norm, 1e-14 * norm);
    }
    const auto original = rows.original_features();
    std::vector<Index> sorted(original.begin(), original.end());
    std::ranges::sort(sorted);
    CHECK(sorted == fixtures::identity(x.columns));
    // Dense rows keep the caller's order; else the frequent ones come first.
    if (dense) CHECK(std::ranges::is_sorted(original));
    if (!dense) CHECK(std::ranges::is_sorted(original, std::greater(), [&](Index f) { return occurrences[f]; }));
}

template <class Value, class Column, class Start>
void check_csr(const Matrix& x, std::span<const Index> order, bool dense) {
    Csr<Value, Column, Start> csr(x);
    check_rows(LinearRows<float>(csr.view(), order, {}), x, order, dense);
    check_rows(LinearRows<double>(csr.view(), order, {}), x, order, dense);
    // Explicit zeros do not count, and the columns of a row may come in any order.
    Csr<Value, Column, Start> loose(Matrix(0, x.columns));
    loose.rows = x.rows;
    for (Index i = 0; i < x.rows; ++i) {
        for (Index f = x.columns; f-- > 0;) {
            loose.values.push_back(static_cast<Value>(x.at(i, f)));
            loose.columns.push_back(static_cast<Column>(f));
        }
        loose.starts.push_back(static_cast<Start>(loose.values.size()));
    }
    check_rows(LinearRows<float>(loose.view(), order, {}), x, order, dense);
    check_rows(LinearRows<double>(loose.view(), order, {}), x, order, dense);
}

/// Few digits, so that nothing is rounded; an empty row, a feature that is zero everywhere, and one that never is.
Matrix short_numbers(double density, Random& random) {
    Matrix x(23, 9);
    for (double& v : x.values) v = random.uniform() < density ? 0.125 * static_cast<double>(random.below(64) + 1) : 0.0;
    for (Index i = 0; i < x.rows; ++i) {
        x.at(i, 4) = 0.0;
        x.at(i, 7) = -1.0;
    }
    for (const Index i : {0, 11, 22}) std::fill_n(x.values.begin() + i * x.columns, x.columns, 0.0);
    return x;
}

}  // namespace

TEST(linear_rows_hold_the_data_of_any_type) {
    Random random(301);
    for (const double density : {0.2, 0.9}) {
        const bool dense = density > 0.5;
        const Matrix x = short_numbers(density, random);
        const Floats floats(x);
        std::vector<Index> some = random.permutation(x.rows);
        some.resize(15);
        for (const auto& order : {fixtures::identity(x.rows), some}) {
            check_rows(LinearRows<float>(x.dense(), order, {}), x, order, dense);
            check_rows(LinearRows<double>(x.dense(), order, {}), x, order, dense);
            check_rows(LinearRows<float>(floats.view(), order, {}), x, order, dense);
            check_rows(LinearRows<double>(floats.view(), order, {}), x, order, dense);
            check_csr<float, std::int32_t, std::int32_t>(x, order, dense);
            check_csr<double, std::int32_t, std::int64_t>(x, order, dense);
            check_csr<float, std::int64_t, std::int32_t>(x, order, dense);
            check_csr<double, std::int64_t, std::int64_t>(x, order, dense);
        }
    }
}

TEST(linear_rows_in_single_precision_are_rounded_with_their_norms) {
    Random random(302);
    const Matrix x = fixtures::random_matrix(12, 7, random);
    const LinearRows<float> rows(x.dense(), fixtures::identity(12), {});
    for (Index i = 0; i < 12; ++i) {
        double norm = 0.0;
        for (Index f = 0; f < 7; ++f) {
            CHECK(rows.row(i).values[f] == static_cast<float>(x.at(i, f)));
            norm += static_cast<double>(rows.row(i).values[f]) * static_cast<double>(rows.row(i).values[f]);
        }
        CHECK_CLOSE(rows.norm(i), norm, 1e-15 * norm);
    }
    Matrix large(1, 1);
    large.at(0, 0) = 1e30;  // a float, but its square is not
    CHECK_CLOSE(LinearRows<float>(large.dense(), fixtures::identity(1), {}).norm(0), 1e60, 1e54);
}

TEST(linear_rows_do_not_depend_on_the_threads) {
    Random random(303);
    ThreadPool pool(3);
    Control control;
    for (const double density : {0.3, 1.0}) {
        const Matrix x = fixtures::random_matrix(2500, 6, random, density);
        const auto order = random.permutation(2500);
        const LinearRows<double> alone(x.dense(), order, {}), shared(x.dense(), order, {&pool, &control});
        check_rows(shared, x, order, density > 0.5);
        CHECK(unpacked(alone).values == unpacked(shared).values);
        CHECK(std::ranges::equal(alone.original_features(), shared.original_features()));
        for (Index i = 0; i < 2500; ++i) CHECK(alone.norm(i) == shared.norm(i));
    }
}

TEST(linear_rows_without_their_centre) {
    Random random(304);
    const Matrix x = short_numbers(0.2, random);
    const auto order = random.permutation(x.rows);
    Matrix moved = x;
    std::vector<double> shift(x.columns);
    for (double& s : shift) s = 0.25 * static_cast<double>(random.below(9));
    for (Index i = 0; i < x.rows; ++i) {
        for (Index f = 0; f < x.columns; ++f) moved.at(i, f) -= shift[f];
    }
    check_rows(LinearRows<float>(x.dense(), order, {}, shift), moved, order, true);
    check_rows(LinearRows<double>(Floats(x).view(), order, {}, shift), moved, order, true);
}

TEST(linear_rows_of_nothing) {
    for (const auto& [n, features] : {std::pair<Index, Index>{0, 3}, {3, 0}, {3, 4}}) {
        const Matrix x(n, features);
        const auto order = fixtures::identity(n);
        check_rows(LinearRows<double>(x.dense(), order, {}), x, order, false);
        check_rows(LinearRows<float>(Csr<double, std::int32_t>(x).view(), order, {}), x, order, false);
    }
}

TEST(an_overflow_in_linear_rows_names_row_and_column) {
    Matrix x(4, 3);
    x.at(2, 0) = 5.0;
    x.at(2, 1) = -1e160;
    x.at(2, 2) = 1e150;
    const std::vector<Index> order{3, 2, 0}, others{3, 0, 1};  // the row that is named is the caller's
    const Csr<double, std::int32_t> csr(x);
    for (const DataView& data : {DataView(x.dense()), DataView(csr.view())}) {
        CHECK_THROWS(std::invalid_argument, "row 2, column 1", LinearRows<double>(data, order, {}));
        CHECK_THROWS(std::invalid_argument, "row 2, column 1", LinearRows<float>(data, order, {}));
        CHECK(LinearRows<double>(data, others, {}).norm(0) == 0.0);  // rows that are left out are not looked at
    }
    ThreadPool pool(2);
    CHECK_THROWS(std::invalid_argument, "row 2, column 1", LinearRows<double>(x.dense(), order, {&pool, nullptr}));
    // No square overflows but their sum is too large: the largest is to blame.
    for (Index f = 0; f < 3; ++f) x.at(2, f) = 9e149 + 1e148 * static_cast<double>(f);
    CHECK_THROWS(std::invalid_argument, "row 2, column 2", LinearRows<double>(x.dense(), order, {}));
    x.at(2, 0) = x.at(2, 1) = 0.0;
    CHECK(LinearRows<double>(x.dense(), order, {}).norm(1) > 1e298);
}

TEST(entries_come_in_the_order_of_the_data_without_zeros) {
    Matrix x(2, 4);
    x.values = {0.0, 2.0, 0.0, -3.0, 0.0, 0.0, 0.0, 0.0};
    Csr<float, std::int64_t, std::int32_t> csr(x);
    std::swap(csr.values[0], csr.values[1]);
    std::swap(csr.columns[0], csr.columns[1]);
    csr.values.push_back(0.0F);
    csr.columns.push_back(1);
    csr.starts.back() = 3;
    const auto entries = [](const DataView& data, Index i) {
        std::vector<std::pair<Index, double>> all;
        for_entries(data, i, [&](Index f, double v) { all.emplace_back(f, v); });
        return all;
    };
    using Entries = std::vector<std::pair<Index, double>>;
    CHECK(entries(x.dense(), 0) == Entries{{1, 2.0}, {3, -3.0}});
    CHECK(entries(csr.view(), 0) == Entries{{3, -3.0}, {1, 2.0}});
    CHECK(entries(x.dense(), 1).empty() && entries(csr.view(), 1).empty());
    CHECK(features_of(x.dense()) == 4 && features_of(csr.view()) == 4);
}

TEST(rows_may_be_read_when_they_are_needed) {
    for (const double density : {0.2, 1.0}) {
        const LinearProblem problem(3, 3000, 7, density, 72);
        const DataView data = problem.csr.view();
        const LinearRows<float> all(data, problem.order, {});
        auto some = LinearRows<float>::unread(data, problem.order, {});
        CHECK(some.ready() == 0 && all.ready() == 3000);
        CHECK(some.size() == 3000 && some.bytes() == all.bytes() && some.dense() == all.dense());
        for (const Index count : {700, 300, 3000}) {
            some.read_to(count, {});
            for (Index i = 0; i < count; ++i) {
                const Row<float> a = some.row(i), b = all.row(i);
                CHECK(a.count == b.count && std::equal(a.values, a.values + a.count, b.values));
                CHECK(a.columns == nullptr || std::equal(a.columns, a.columns + a.count, b.columns));
                CHECK(some.norm(i) == all.norm(i));
            }
        }
    }
}
