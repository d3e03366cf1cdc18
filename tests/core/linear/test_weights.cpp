#include "linear/weights.hpp"

#include <algorithm>
#include <limits>

#include "check.hpp"
#include "fixtures.hpp"
#include "linear/measure.hpp"

using namespace polymargin;
using fixtures::Random;

namespace {

template <class Real>
constexpr double kRounding = 4.0 * static_cast<double>(std::numeric_limits<Real>::epsilon());

/// Weights, the same in a plain matrix, and examples that meet them.
template <class Real>
struct Setup {
    Weights<Real> weights;
    fixtures::Matrix plain;

    Setup(Index features, Index classes, Random& random) : weights(features, classes), plain(features, classes) {
        CHECK(weights.classes() == classes && weights.width() >= classes);
        CHECK(weights.width() * static_cast<Index>(sizeof(Real)) % 32 == 0);
        for (Index f = 0; f < features; ++f) {
            for (Index m = 0; m < weights.width(); ++m) CHECK(weights.row(f)[m] == Real(0));
            for (Index m = 0; m < classes; ++m) {
                weights.row(f)[m] = static_cast<Real>(random.normal());
                plain.at(f, m) = static_cast<double>(weights.row(f)[m]);
            }
        }
    }

    [[nodiscard]] static Index feature(const Row<Real>& x, Index p) { return x.columns == nullptr ? p : x.columns[p]; }

    void check_products(const Row<Real>& x, std::span<const Index> some) const {
        const Index k = weights.classes();
        std::vector<double> expected(k, 0.0), size(k, 0.0);
        for (Index p = 0; p < x.count; ++p) {
            for (Index m = 0; m < k; ++m) {
                expected[m] += static_cast<double>(x.values[p]) * plain.at(feature(x, p), m);
                size[m] += std::abs(static_cast<double>(x.values[p]) * plain.at(feature(x, p), m));
            }
        }
        std::vector<Real> out(weights.width() + 1, Real(7));
        weights.products(x, out.data());
        for (Index m = 0; m < k; ++m) CHECK_CLOSE(out[m], expected[m], 10 * kRounding<Real> * size[m]);
        for (Index m = k; m < weights.width(); ++m) CHECK(out[m] == Real(0));
        CHECK(out.back() == Real(7));
        std::ranges::fill(out, Real(7));
        weights.products(x, some, out.data());
        for (std::size_t c = 0; c < some.size(); ++c) {
            CHECK_CLOSE(out[c], expected[some[c]], 10 * kRounding<Real> * size[some[c]]);
        }
        CHECK(out[some.size()] == Real(7));
    }

    /// Add to all classes, or to some.
    void check_add(const Row<Real>& x, std::span<const Index> some, bool all, Random& random) {
        std::vector<Real> by(weights.width(), Real(0));
        std::vector<Index> used(some.begin(), some.end());
        if (all) used = fixtures::identity(weights.classes());
        for (std::size_t c = 0; c < used.size(); ++c) by[c] = static_cast<Real>(random.normal());
        if (all) weights.add(x, by.data());
        if (!all) weights.add(x, used, by.data());
        for (Index p = 0; p < x.count; ++p) {
            for (std::size_t c = 0; c < used.size(); ++c) {
                plain.at(feature(x, p), used[c]) += static_cast<double>(x.values[p]) * static_cast<double>(by[c]);
            }
        }
        for (Index f = 0; f < plain.rows; ++f) {
            for (Index m = 0; m < plain.columns; ++m) {
                // What was not named is not touched: the plain numbers are those of the weights.
                const bool touched = std::ranges::find(used, m) != used.end();
                CHECK_CLOSE(weights.row(f)[m], plain.at(f, m), touched ? kRounding<Real> * 10.0 : 0.0);
                plain.at(f, m) = static_cast<double>(weights.row(f)[m]);
            }
            for (Index m = plain.columns; m < weights.width(); ++m) CHECK(weights.row(f)[m] == Real(0));
        }
    }

    void check_example(const Row<Real>& x, Random& random) {
        auto some = random.permutation(weights.classes());
        some.resize(random.below(weights.classes() + 1));
        check_products(x, some);
        check_add(x, some, true, random);
        check_add(x, some, false, random);
        check_products(x, some);
    }
};

/// Dense examples and sparse ones, of all numbers of values that a loop may treat differently.
template <class Real>
void check_weights(Index features, Index classes, Random& random) {
    Setup<Real> setup(features, classes, random);
    std::vector<Real> values(features);
    for (Real& v : values) v = static_cast<Real>(random.uniform(-2.0, 2.0));
    setup.check_example({values.data(), nullptr, features}, random);
    for (const Index count : {Index{0}, Index{1}, Index{2}, random.below(features), features}) {
        std::vector<std::uint32_t> columns;
        for (const Index f : random.permutation(features)) columns.push_back(static_cast<std::uint32_t>(f));
        setup.check_example({values.data(), columns.data(), count}, random);
    }
}

template <class Real>
void check_measure(Random& random) {
    constexpr auto infinity = std::numeric_limits<Real>::infinity();
    for (Index classes = 1; classes <= 70; ++classes) {
        const Index width = Weights<Real>(1, classes).width();
        std::vector<Real> scores(width, Real(0)), bias(width, Real(0)), fall(width, -infinity), grow(width, infinity);
        const double share = random.uniform(-0.2, 1.2);  // in some rows all may move, in some none
        for (Index m = 0; m < classes; ++m) {
            scores[m] = static_cast<Real>(random.normal());
            bias[m] = static_cast<Real>(random.normal());
            if (random.uniform() < share) fall[m] = Real(0);
            if (random.uniform() < share) grow[m] = Real(0);
        }
        const Index label = random.below(classes + 1) - 1;
        const Real offset = static_cast<Real>(random.normal()), own = static_cast<Real>(random.normal());
        double highest = -infinity, lowest = infinity;
        std::vector<double> expected(width, 0.0);
        for (Index m = 0; m < classes; ++m) {
            expected[m] = static_cast<double>(scores[m]) + static_cast<double>(bias[m]);
            const double g = expected[m] + static_cast<double>(offset) + (m == label ? static_cast<double>(own) : 0.0);
            if (fall[m] == Real(0)) highest = std::max(highest, g);
            if (grow[m] == Real(0)) lowest = std::min(lowest, g);
        }
        const auto found = add_and_measure<Real>(scores, bias, offset, label, own, fall, grow);
        CHECK_CLOSE(found.highest, highest, 10 * kRounding<Real>);
        CHECK_CLOSE(found.lowest, lowest, 10 * kRounding<Real>);
        for (Index m = 0; m < width; ++m) CHECK_CLOSE(scores[m], expected[m], 10 * kRounding<Real>);
    }
}

}  // namespace

TEST(products_and_sums_of_weights_of_any_number_of_classes) {
    Random random(311);
    for (Index classes = 1; classes <= 70; ++classes) {
        check_weights<float>(11, classes, random);
        check_weights<double>(11, classes, random);
    }
}

TEST(weights_that_are_fetched_ahead) {
    // More than what is taken to be near.
    Random random(312);
    check_weights<float>(1200, 70, random);
    check_weights<double>(1200, 33, random);
}

TEST(weights_of_no_features) {
    const Weights<double> weights(0, 5);
    std::vector<double> out(weights.width(), 7.0);
    weights.products({nullptr, nullptr, 0}, out.data());
    CHECK(std::ranges::all_of(out, [](double s) { return s == 0.0; }));
}

TEST(scores_are_measured_while_the_bias_is_added) {
    Random random(313);
    for (int repeat = 0; repeat < 20; ++repeat) {
        check_measure<float>(random);
        check_measure<double>(random);
    }
}
