#include "kernel/gram.hpp"

#include <stdexcept>

#include "check.hpp"
#include "fixtures.hpp"

using namespace polymargin;
using fixtures::KernelSetup;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr Index kAmple = Index{1} << 30;
const KernelSpec kRbf{.type = KernelType::rbf, .gamma = 0.1};

template <class Real>
constexpr double kAccuracy = std::is_same_v<Real, float> ? 1e-6 : 1e-14;

template <class Real>
void check_row(const RowTable<Real>& table, Index g, const Matrix& gram) {
    const Real* row = table.row(g);
    CHECK(row != nullptr);
    for (Index c = table.columns().begin; c < table.columns().end; ++c) {
        CHECK_CLOSE(row[c - table.columns().begin], gram.at(g, c), kAccuracy<Real>);
    }
}

/// The bytes of the rows that a table holds.
template <class Real>
Index held_bytes(const RowTable<Real>& table) {
    Index rows = 0;
    for (Index g = table.rows().begin; g < table.rows().end; ++g) rows += table.row(g) != nullptr;
    return rows * padded<Real>(table.columns().size()) * static_cast<Index>(sizeof(Real));
}

template <class Real>
Index row_bytes(Index columns) {
    return padded<Real>(columns) * static_cast<Index>(sizeof(Real));
}

/// A matrix that is there is read, not copied, and takes nothing of the budget.
template <class Real>
void check_adopted() {
    Random random(52);
    const Matrix x = fixtures::random_matrix(30, 4, random);
    const Matrix gram = fixtures::plain_gram(kRbf, x, fixtures::identity(30));
    const std::vector<Real> values(gram.values.begin(), gram.values.end());
    KernelSetup<Real> setup(kRbf, x.dense(), fixtures::identity(30), 1000, 1);
    setup.store.adopt_whole(values.data());
    CHECK(setup.store.whole() && setup.store.evaluations() == 0 && setup.store.unused_bytes() == 1000);
    const auto table = setup.store.open({3, 20}, {10, 30});
    for (Index g = 3; g < 20; ++g) {
        check_row(*table, g, gram);
        CHECK(table->row(g) == values.data() + g * 30 + 10);
    }
}

/// More than one tile in each direction, the last ones short.
template <class Real>
void check_modes() {
    Random random(51);
    const Matrix x = fixtures::random_matrix(600, 4, random);
    const auto order = random.permutation(600);
    const Matrix gram = fixtures::plain_gram(kRbf, x, order);
    KernelSetup<Real> whole(kRbf, x.dense(), order, kAmple, 2), rows(kRbf, x.dense(), order, kAmple, 2);
    whole.store.compute_whole();
    CHECK(whole.store.whole() && !rows.store.whole());
    CHECK(whole.store.evaluations() == 600 * 601 / 2);
    CHECK(whole.store.size() == 600);
    const Range few{100, 310}, many{0, 600};
    for (const auto& [r, c] : {std::pair{few, many}, {many, few}, {few, few}}) {
        auto view = whole.store.open(r, c), table = rows.store.open(r, c);
        CHECK(table->rows() == r && table->columns() == c);
        CHECK(table->row(r.begin) == nullptr);
        std::vector<Index> wanted;
        for (Index g = r.begin; g < r.end; ++g) wanted.push_back(g);
        whole.store.request(view, wanted);
        rows.store.request(table, wanted);
        const Index before = rows.store.evaluations();
        CHECK(whole.store.fulfil() && rows.store.fulfil());
        CHECK(rows.store.evaluations() - before == r.size() * c.size());
        for (Index g = r.begin; g < r.end; ++g) {
            check_row(*view, g, gram);
            check_row(*table, g, gram);
        }
    }
    CHECK(whole.store.evaluations() == 600 * 601 / 2);
}

template <class Real>
void check_eviction() {
    Random random(52);
    const Matrix x = fixtures::random_matrix(120, 3, random);
    const auto order = fixtures::identity(120);
    const Matrix gram = fixtures::plain_gram(kRbf, x, order);
    const Index budget = 30 * row_bytes<Real>(120);
    KernelSetup<Real> setup(kRbf, x.dense(), order, budget);
    auto wide = setup.store.open({0, 120}, {0, 120}), narrow = setup.store.open({0, 60}, {60, 120});
    Index expected = 0;
    for (int round = 0; round < 200; ++round) {
        std::vector<Index> a(1 + random.below(20)), b(1 + random.below(10));
        for (Index& g : a) g = random.below(120);  // the same row may be asked for twice
        for (Index& g : b) g = random.below(60);
        std::vector<char> counted(120, 0);
        for (const Index g : a) {
            if (!wide->row(g) && !counted[g]) expected += 120;
            counted[g] = 1;
        }
        std::fill(counted.begin(), counted.end(), 0);
        for (const Index g : b) {
            if (!narrow->row(g) && !counted[g]) expected += 60;
            counted[g] = 1;
        }
        setup.store.request(wide, a);
        setup.store.request(narrow, b);
        CHECK(setup.store.fulfil());
        CHECK(held_bytes(*wide) + held_bytes(*narrow) <= budget);
        CHECK(setup.store.evaluations() == expected);
        for (const Index g : a) check_row(*wide, g, gram);
        for (const Index g : b) check_row(*narrow, g, gram);
    }
}

/// The matrices of some ranges; more than one tile in the largest.
template <class Real>
void check_squares() {
    Random random(60);
    const Matrix x = fixtures::random_matrix(700, 4, random);
    const auto order = random.permutation(700);
    const Matrix gram = fixtures::plain_gram(kRbf, x, order);
    const std::vector<Range> ranges{{0, 90}, {90, 91}, {100, 700}};
    KernelSetup<Real> squares(kRbf, x.dense(), order, kAmple, 2), whole(kRbf, x.dense(), order, kAmple, 2);
    squares.store.compute_squares(ranges);
    whole.store.compute_whole();
    CHECK(squares.store.evaluations() == 90 * 91 / 2 + 1 + 600 * 601 / 2);
    CHECK(!squares.store.whole() && whole.store.whole());
    for (const Range inside : {Range{0, 90}, {90, 91}, {100, 700}, {10, 20}, {300, 700}}) {
        CHECK(squares.store.has_square(inside));
    }
    for (const Range across : {Range{0, 91}, {91, 100}, {95, 110}, {0, 700}}) CHECK(!squares.store.has_square(across));
    for (const auto& [r, c] : {std::pair{Range{0, 90}, Range{0, 90}}, {{90, 91}, {90, 91}}, {{300, 420}, {150, 700}}}) {
        const auto view = squares.store.open(r, c), same = whole.store.open(r, c);
        for (Index g = r.begin; g < r.end; ++g) {
            check_row(*view, g, gram);
            for (Index i = 0; i < c.size(); ++i) CHECK_CLOSE(view->row(g)[i], same->row(g)[i], kAccuracy<Real>);
        }
    }
    const auto all = squares.store.open({100, 700}, {100, 700});
    for (Index g = 100; g < 700; ++g) {
        for (Index c = 100; c < g; ++c) CHECK(all->row(g)[c - 100] == all->row(c)[g - 100]);  // symmetric to the bit
    }
    // What lies between the squares is computed by rows.
    auto between = squares.store.open({0, 90}, {100, 700});
    CHECK(between->row(5) == nullptr);
    const Index before = squares.store.evaluations();
    squares.store.request(between, std::vector<Index>{5, 89});
    CHECK(squares.store.fulfil());
    CHECK(squares.store.evaluations() == before + 2 * 600);
    check_row(*between, 5, gram);
    check_row(*between, 89, gram);
}

template <class Real>
void check_private_rows() {
    Random random(61);
    const Matrix x = fixtures::random_matrix(700, 4, random);
    const auto order = random.permutation(700);
    const Matrix gram = fixtures::plain_gram(kRbf, x, order);
    KernelSetup<Real> setup(kRbf, x.dense(), order, kAmple);
    PrivateRows<Real> rows(setup.engine);
    Index expected = 0;
    // Smaller, larger, the other way round, and one that begins where another began.
    for (const auto& [a, b] : {std::pair{Range{0, 40}, Range{50, 110}},
                               {{300, 700}, {0, 290}},
                               {{50, 110}, {0, 40}},
                               {{0, 41}, {50, 110}}}) {
        rows.open(a, b);
        for (const auto& [from, to] : {std::pair{a, b}, {b, a}}) {
            const auto table = rows.table(from);
            CHECK(table->rows() == from && table->columns() == to);
            for (Index g = from.begin; g < from.end; ++g) CHECK(table->row(g) == nullptr);
        }
        for (int round = 0; round < 4; ++round) {
            for (const auto& [from, to] : {std::pair{a, b}, {b, a}}) {
                const auto table = rows.table(from);
                std::vector<Index> wanted(1 + random.below(20));
                for (Index& g : wanted) g = from.begin + random.below(from.size());
                std::vector<char> counted(700, 0);
                for (const Index g : wanted) {
                    if (!table->row(g) && !counted[g]) expected += to.size();
                    counted[g] = 1;
                }
                rows.compute(*table, wanted);
                CHECK(rows.evaluations() == expected);
            }
        }
        // All that was computed is still right: no row lies on another.
        for (const auto& [from, to] : {std::pair{a, b}, {b, a}}) {
            const auto table = rows.table(from);
            std::vector<Index> every(from.size());
            std::iota(every.begin(), every.end(), from.begin);
            rows.compute(*table, every);
        }
        expected = rows.evaluations();
        for (const Range from : {a, b}) {
            for (Index g = from.begin; g < from.end; ++g) check_row(*rows.table(from), g, gram);
        }
    }
}

}  // namespace

TEST(a_matrix_that_is_there_is_read_in_place) {
    check_adopted<float>();
    check_adopted<double>();
}

TEST(whole_and_rows_give_the_same_values) {
    check_modes<float>();
    check_modes<double>();
}

TEST(the_budget_holds_and_evicted_rows_come_back_right) {
    check_eviction<float>();
    check_eviction<double>();
}

TEST(the_least_recently_used_rows_go_first) {
    Random random(53);
    const Matrix x = fixtures::random_matrix(64, 3, random);
    KernelSetup<double> setup(kRbf, x.dense(), fixtures::identity(64), 20 * row_bytes<double>(64));
    auto table = setup.store.open({0, 64}, {0, 64});
    const auto use = [&](Index g) {
        setup.store.request(table, std::vector<Index>{g});
        CHECK(setup.store.fulfil());
    };
    for (Index g = 0; g < 20; ++g) use(g);
    use(0);  // is now the newest
    for (Index g = 0; g < 20; ++g) CHECK(table->row(g) != nullptr);
    use(20);
    CHECK(table->row(1) == nullptr);
    CHECK(table->row(0) != nullptr && table->row(19) != nullptr && table->row(20) != nullptr);
}

TEST(rows_asked_for_in_one_round_stay_together) {
    Random random(54);
    const Matrix x = fixtures::random_matrix(64, 3, random);
    const auto order = fixtures::identity(64);
    const Matrix gram = fixtures::plain_gram(kRbf, x, order);
    KernelSetup<double> setup(kRbf, x.dense(), order, 20 * row_bytes<double>(64));
    auto first = setup.store.open({0, 64}, {0, 64}), second = setup.store.open({0, 64}, {0, 64});
    // As old as can be, but asked for again: it must survive the rows that come with it.
    setup.store.request(first, std::vector<Index>{5});
    CHECK(setup.store.fulfil());
    std::vector<Index> many(19);
    std::iota(many.begin(), many.end(), Index{10});
    setup.store.request(second, many);
    CHECK(setup.store.fulfil());
    setup.store.request(first, std::vector<Index>{5, 6});
    setup.store.request(second, std::span(many).first(18));
    CHECK(setup.store.fulfil());
    check_row(*first, 5, gram);
    check_row(*first, 6, gram);
    for (const Index g : std::span(many).first(18)) check_row(*second, g, gram);
}

TEST(a_round_beyond_the_budget_is_refused) {
    Random random(55);
    const Matrix x = fixtures::random_matrix(64, 3, random);
    KernelSetup<double> setup(kRbf, x.dense(), fixtures::identity(64), 10 * row_bytes<double>(64));
    auto table = setup.store.open({0, 64}, {0, 64});
    std::vector<Index> rows(11);
    std::iota(rows.begin(), rows.end(), Index{0});
    setup.store.request(table, rows);
    CHECK_THROWS(std::invalid_argument, "cache_size is too small", setup.store.fulfil());
}

TEST(exactly_the_budget_is_enough) {
    Random random(56);
    const Matrix x = fixtures::random_matrix(64, 3, random);
    const auto order = fixtures::identity(64);
    KernelSetup<double> setup(kRbf, x.dense(), order, 10 * row_bytes<double>(64));
    const Matrix gram = fixtures::plain_gram(kRbf, x, order);
    auto table = setup.store.open({0, 64}, {0, 64});
    for (const Index start : {0, 10, 5}) {
        std::vector<Index> rows(10);
        std::iota(rows.begin(), rows.end(), start);
        setup.store.request(table, rows);
        CHECK(setup.store.fulfil());
        for (const Index g : rows) check_row(*table, g, gram);
    }
}

TEST(closed_tables_free_their_rows) {
    Random random(57);
    const Matrix x = fixtures::random_matrix(64, 3, random);
    KernelSetup<double> setup(kRbf, x.dense(), fixtures::identity(64), 10 * row_bytes<double>(64));
    std::vector<Index> rows(10);
    std::iota(rows.begin(), rows.end(), Index{0});
    for (int repeat = 0; repeat < 3; ++repeat) {
        auto table = setup.store.open({0, 64}, {0, 64});
        setup.store.request(table, rows);
        CHECK(setup.store.fulfil());
        setup.store.close(*table);
        CHECK(held_bytes(*table) == 0);
    }
    CHECK(setup.store.evaluations() == 3 * 10 * 64);
}

TEST(the_values_do_not_depend_on_the_threads) {
    Random random(58);
    const Matrix x = fixtures::random_matrix(700, 3, random);
    std::vector<Index> rows(300);
    std::iota(rows.begin(), rows.end(), Index{200});
    std::vector<std::vector<float>> seen;
    for (const int threads : {1, 2, 4}) {
        KernelSetup<float> setup(kRbf, x.dense(), fixtures::identity(700), kAmple, threads);
        auto table = setup.store.open({0, 700}, {0, 700});
        setup.store.request(table, rows);
        CHECK(setup.store.fulfil());
        std::vector<float> values;
        for (const Index g : rows) values.insert(values.end(), table->row(g), table->row(g) + 700);
        seen.push_back(std::move(values));
    }
    CHECK(seen[0] == seen[1] && seen[0] == seen[2]);
}

TEST(squares_are_parts_of_the_whole) {
    check_squares<float>();
    check_squares<double>();
}

TEST(squares_do_not_depend_on_the_threads) {
    Random random(62);
    const Matrix x = fixtures::random_matrix(700, 3, random);
    const std::vector<Range> ranges{{0, 300}, {300, 700}};
    std::vector<std::vector<float>> seen;
    for (const int threads : {1, 2, 4}) {
        KernelSetup<float> setup(kRbf, x.dense(), fixtures::identity(700), kAmple, threads);
        setup.store.compute_squares(ranges);
        std::vector<float> values;
        for (const Range range : ranges) {
            const auto table = setup.store.open(range, range);
            for (Index g = range.begin; g < range.end; ++g) {
                values.insert(values.end(), table->row(g), table->row(g) + range.size());
            }
        }
        seen.push_back(std::move(values));
    }
    CHECK(seen[0] == seen[1] && seen[0] == seen[2]);
}

TEST(squares_may_come_one_after_the_other) {
    Random random(64);
    const Matrix x = fixtures::random_matrix(300, 4, random);
    const auto order = random.permutation(300);
    KernelSetup<float> at_once(kRbf, x.dense(), order, kAmple), later(kRbf, x.dense(), order, kAmple);
    const std::vector<Range> ranges{{0, 90}, {90, 91}, {100, 300}};
    at_once.store.compute_squares(ranges);
    const auto rows = later.store.shared({100, 300});  // by rows, until its square comes
    const std::vector<Index> some{100, 250};
    later.store.request(rows, some);
    CHECK(later.store.fulfil() && later.store.holds_rows());
    for (const Range range : ranges) {
        CHECK(!later.store.has_square(range));
        later.store.compute_squares(std::span(&range, 1));
        CHECK(later.store.has_square(range));
    }
    for (const Range range : ranges) {
        const auto expected = at_once.store.shared(range), found = later.store.shared(range);
        CHECK(found == later.store.shared(range));
        for (Index g = range.begin; g < range.end; ++g) {
            CHECK(std::equal(found->row(g), found->row(g) + range.size(), expected->row(g)));
        }
    }
    CHECK(later.store.evaluations() == at_once.store.evaluations() + 2 * 200);
    CHECK(at_once.store.unused_bytes() < at_once.store.budget());
    at_once.store.clear();
    CHECK(at_once.store.unused_bytes() == at_once.store.budget());
    CHECK(!at_once.store.has_square({0, 90}) && !at_once.store.holds_rows());
}

TEST(a_store_goes_on_with_other_threads_and_another_control) {
    Random random(65);
    const Matrix x = fixtures::random_matrix(120, 4, random);
    KernelSetup<double> setup(kRbf, x.dense(), fixtures::identity(120), kAmple);
    const auto table = setup.store.shared({0, 120});
    const std::vector<Index> first{3}, second{3, 4};
    setup.store.request(table, first);
    CHECK(setup.store.fulfil());
    setup.control.cancel();
    ThreadPool pool(2);
    const Control control;
    setup.store.work_with(pool, control);
    setup.store.request(table, second);
    CHECK(setup.store.fulfil());
    CHECK(setup.store.evaluations() == 2 * 120);
    CHECK(&setup.store.pool() == &pool && &setup.store.control() == &control);
}

TEST(private_rows_in_both_directions_and_again_for_another_pair) {
    check_private_rows<float>();
    check_private_rows<double>();
}

TEST(a_stop_request_is_reported) {
    Random random(59);
    const Matrix x = fixtures::random_matrix(64, 3, random);
    KernelSetup<double> cancelled(kRbf, x.dense(), fixtures::identity(64), kAmple);
    auto table = cancelled.store.open({0, 64}, {0, 64});
    cancelled.control.cancel();
    cancelled.store.request(table, std::vector<Index>{1, 2, 3});
    CHECK(!cancelled.store.fulfil());
    KernelSetup<double> late(kRbf, x.dense(), fixtures::identity(64), kAmple, 1, 0.0);
    CHECK(!late.store.fulfil());
}
