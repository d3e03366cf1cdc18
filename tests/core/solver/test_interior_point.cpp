#include "solver/interior_point.hpp"

#include "check.hpp"
#include "fixtures.hpp"
#include "plain_absolute.hpp"
#include "plain_blas.hpp"
#include "plain_losses.hpp"
#include "problem/crammer_singer.hpp"
#include "problem/weston_watkins.hpp"
#include "support/block_cholesky.hpp"

using namespace polymargin;
using fixtures::Matrix;
using fixtures::Random;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Index kAmple = Index{1} << 30;

/// The matrix of a kernel, stored in some precision, and a pool to work with.
template <class Real>
struct Kernel {
    std::vector<Real> values;
    ThreadPool pool;
    Control control;
    KernelProduct<Real> product;

    Kernel(const Matrix& gram, double weight, int threads = 1)
        : values(gram.values.begin(), gram.values.end()),
          pool(threads),
          product(rows_of(gram.rows), weight, pool, control) {}

    [[nodiscard]] std::vector<const Real*> rows_of(Index n) const {
        std::vector<const Real*> rows;
        for (Index i = 0; i < n; ++i) rows.push_back(values.data() + i * n);
        return rows;
    }
};

Plane random_plane(Index classes, Index n, Random& random) {
    Plane plane(classes, n);
    for (Index m = 0; m < classes; ++m) {
        for (Index i = 0; i < n; ++i) plane.at(m, i) = random.normal();
    }
    return plane;
}

Matrix random_gram(Index n, std::uint64_t seed) {
    Random random(seed);
    const Matrix x = fixtures::blobs(1, n, 3, 0.0, random);
    return fixtures::plain_gram({.type = KernelType::rbf, .gamma = 0.4}, x, fixtures::identity(n));
}

template <class Real>
void check_products(Index n, Index classes, double weight) {
    const Matrix gram = random_gram(n, 311);
    const Kernel<Real> kernel(gram, weight, 2);
    Random random(312);
    const Plane x = random_plane(classes, n, random);
    Plane out = random_plane(classes, n, random);
    kernel.product.apply(x.view(), out.view());
    for (Index m = 0; m < classes; ++m) {
        for (Index i = 0; i < n; ++i) {
            double sum = 0.0;
            for (Index j = 0; j < n; ++j) sum += kernel.product.value(i, j) * x.at(m, j);
            CHECK_CLOSE(out.at(m, i), sum, 1e-12 * static_cast<double>(n));
        }
    }
}

/// Overlapping classes with costs that differ, some of them zero.
struct Data {
    Matrix gram;
    std::vector<Index> labels;
    std::vector<double> cost_bounds;
    Index classes;

    Data(Index k, Index per_class, double C, std::uint64_t seed) : gram(0, 0), classes(k) {
        Random random(seed);
        const Matrix x = fixtures::blobs(k, per_class, 4, 0.5, random);
        gram = fixtures::plain_gram({.type = KernelType::rbf, .gamma = 0.2}, x, fixtures::identity(x.rows));
        for (Index i = 0; i < x.rows; ++i) {
            labels.push_back(i / per_class);
            cost_bounds.push_back(i % 17 == 3 ? 0.0 : C * random.uniform(0.5, 1.5));
        }
    }
    [[nodiscard]] Index size() const { return gram.rows; }
};

/// Limits of both kinds: the sum of the two largest shortfalls of the margin 1.5.
struct TwoWorst {
    static OwnOffset offsets(Index label) { return {.label = label, .own = -1.5, .others = 0.0}; }
    static RowLimits row_limits(double cost_bound) { return {.largest = cost_bound, .most = 2 * cost_bound}; }
};

template <class Loss>
InteriorPointProblem problem_of(const Loss& loss, const Data& data, bool free_bias) {
    InteriorPointProblem problem{.labels = data.labels,
                                 .limits = {},
                                 .slopes = Plane(data.classes, data.size()),
                                 .absolute = kScoresSumToZero<Loss>,
                                 .free_bias = free_bias,
                                 .unit = 1.0,
                                 .most_bytes = kAmple};
    for (Index i = 0; i < data.size(); ++i) {
        const Index y = data.labels[i];
        const auto offsets = loss.offsets(y);
        for (Index m = 0; m < data.classes; ++m) {
            const double relative = offsets[y] - offsets[m], absolute = m == y ? offsets[y] : -offsets[m];
            problem.slopes.at(m, i) = problem.absolute ? absolute : relative;
        }
        problem.limits.push_back(loss.row_limits(data.cost_bounds[i]));
    }
    return problem;
}

struct Outcome {
    InteriorPointResult result;
    plain::Machine machine;
};

template <class Real, class Loss>
Outcome solve(const Loss& loss, const Data& data, double weight, bool free_bias, double gap, int threads = 1) {
    Kernel<Real> kernel(data.gram, free_bias ? InteriorPointSettings{}.free_weight : weight, threads);
    ThreadPool pool(threads);
    InteriorPoint<Real> method(problem_of(loss, data, free_bias), kernel.product, pool, plain::blas(), kernel.control);
    Outcome outcome{method.run(gap), {data.classes, {}, weight, {}}};
    for (Index i = 0; i < data.size(); ++i) {
        for (Index m = 0; m < data.classes; ++m) outcome.machine.rows.push_back(method.rows().at(m, i));
    }
    if (free_bias) outcome.machine.shift = outcome.result.bias;
    return outcome;
}

template <class Visit>
void for_losses(Visit&& visit) {
    visit(WestonWatkins(), plain::weston_watkins());
    visit(CrammerSinger(), plain::crammer_singer());
    visit(TwoWorst(), plain::Loss{.margin = 1.5, .largest = 1.0, .most = 2.0});
}

/// What rounding does to a row may take it out of its limits by as much.
void make_feasible(const plain::Loss& loss, const Data& data, plain::Machine& machine) {
    for (Index i = 0; i < data.size(); ++i) {
        const auto row = std::span(machine.rows).subspan(i * data.classes, data.classes);
        const double most = plain::Loss::times(loss.most, data.cost_bounds[i]);
        CHECK(row[data.labels[i]] <= most * (1.0 + 1e-12));
        row[data.labels[i]] = std::min(row[data.labels[i]], most);
    }
}

}  // namespace

TEST(products_of_a_kernel_with_all_classes) {
    for (const Index n : {1, 7, 64, 300}) {
        for (const Index classes : {1, 2, 5, 6, 7, 13}) {
            check_products<float>(n, classes, 0.0);
            check_products<double>(n, classes, 0.7);
        }
    }
}

TEST(products_of_a_kernel_with_few_examples) {
    const Index n = 300, classes = 7;
    const Kernel<float> kernel(random_gram(n, 322), 0.7, 2);
    Random random(323);
    Plane x(classes, n), all(classes, n), some = random_plane(classes, n, random);
    const std::vector<Index> which{0, 3, 150, 151, 299};
    for (const Index i : which) {
        for (Index m = 0; m < classes; ++m) x.at(m, i) = random.normal();
    }
    kernel.product.apply(x.view(), all.view());
    kernel.product.apply(x.view(), which, some.view());
    for (Index m = 0; m < classes; ++m) {
        for (Index i = 0; i < n; ++i) CHECK_CLOSE(some.at(m, i), all.at(m, i), 1e-12);
    }
}

TEST(products_are_the_same_for_any_number_of_threads) {
    const Matrix gram = random_gram(600, 313);
    Random random(314);
    const Plane x = random_plane(7, 600, random);
    Plane one(7, 600), many(7, 600);
    const Kernel<float> alone(gram, 1.0, 1), together(gram, 1.0, 4);
    alone.product.apply(x.view(), one.view());
    together.product.apply(x.view(), many.view());
    for (Index m = 0; m < 7; ++m) CHECK(std::equal(one.view().row(m), one.view().row(m) + 600, many.view().row(m)));
}

TEST(systematic_samples_stand_for_all) {
    Random random(315);
    std::vector<double> values(500);
    for (double& v : values) v = std::exp(3.0 * random.normal());
    for (const Index most : {20, 100, 400}) {
        const auto sample = draw_systematically(values, most, 0.0);
        CHECK(std::abs(std::ssize(sample.rows) - most) <= 1);
        CHECK(std::ranges::is_sorted(sample.rows));
        double roots = 0.0, drawn = 0.0;
        for (const double v : values) roots += std::sqrt(v);
        for (std::size_t s = 0; s < sample.rows.size(); ++s) {
            CHECK(sample.weights[s] >= 1.0);
            drawn += sample.weights[s] * std::sqrt(values[sample.rows[s]]);
        }
        CHECK_CLOSE(drawn, roots, 2.0 * roots / static_cast<double>(most));
    }
    const auto all = draw_systematically(values, 500, 1.0);
    CHECK(std::ssize(all.rows) == std::ranges::count_if(values, [](double v) { return v > 1.0; }));
    CHECK(std::ranges::all_of(all.weights, [](double w) { return w == 1.0; }));
}

TEST(a_sample_of_all_rows_is_the_inverse) {
    const Index n = 80, classes = 3;
    const Kernel<double> kernel(random_gram(n, 316), 0.5);
    ThreadPool pool(2);
    const Blas blas = plain::blas();
    Random random(317);
    Plane diagonal = random_plane(classes, n, random), less(classes, n), kx(classes, n), kr(classes, n);
    for (Index m = 0; m < classes; ++m) {
        for (Index i = 0; i < n; ++i) diagonal.at(m, i) = std::exp(2.0 * diagonal.at(m, i));
    }
    SampledInverse<double> inverse(kernel.product, classes, pool, blas);
    CHECK(inverse.factor(diagonal.view(), n, 0.0, kernel.control));
    const Plane r = random_plane(classes, n, random);
    kernel.product.apply(r.view(), kr.view());
    inverse.apply(kr.view(), less.view());
    Plane x(classes, n);
    for (Index m = 0; m < classes; ++m) {
        for (Index i = 0; i < n; ++i) x.at(m, i) = r.at(m, i) - less.at(m, i);
    }
    kernel.product.apply(x.view(), kx.view());
    for (Index m = 0; m < classes; ++m) {
        for (Index i = 0; i < n; ++i) {
            CHECK_CLOSE(x.at(m, i) + diagonal.at(m, i) * kx.at(m, i), r.at(m, i), 1e-8 * (1.0 + diagonal.at(m, i)));
        }
    }
}

/// `M r` for an example: of the weights D, one of which may be infinite.
double coupled_product(const Plane& weights, const Plane& x, Index m, Index i) {
    double sum = 0.0, mean = 0.0;
    for (Index l = 0; l < x.classes(); ++l) {
        if (std::isinf(weights.at(l, i))) {
            if (l != m) return weights.at(m, i) * (x.at(m, i) - x.at(l, i));
            double out = 0.0;
            for (Index c = 0; c < x.classes(); ++c) {
                if (c != m) out += weights.at(c, i) * (x.at(m, i) - x.at(c, i));
            }
            return out;
        }
        sum += weights.at(l, i);
        mean += weights.at(l, i) * x.at(l, i);
    }
    return weights.at(m, i) * (x.at(m, i) - mean / sum);
}

TEST(a_coupled_inverse_is_the_inverse) {
    const Index n = 60, classes = 4;
    const Kernel<double> kernel(random_gram(n, 324), 0.5);
    const Blas blas = plain::blas();
    Random random(325);
    for (const bool unlimited : {false, true}) {
        Plane weights(classes, n), diagonal(classes, n);
        for (Index i = 0; i < n; ++i) {
            if (i % 9 == 4) continue;  // without room
            for (Index m = 0; m < classes; ++m) weights.at(m, i) = std::exp(random.normal());
            if (unlimited) weights.at(i % classes, i) = kInfinity;
            for (Index m = 0; m < classes; ++m) {
                Plane unit(classes, n);
                unit.at(m, i) = 1.0;
                diagonal.at(m, i) = coupled_product(weights, unit, m, i);
            }
        }
        std::vector<Plane> results;
        const Plane r = random_plane(classes, n, random);
        for (const int threads : {1, 3}) {
            ThreadPool pool(threads);
            CoupledInverse<double> inverse(kernel.product, classes, false, pool, blas);
            inverse.choose(diagonal.view(), weights.view(), 0.0);
            CHECK(inverse.largest_class() == std::ssize(inverse.examples()) && inverse.factor(kernel.control));
            Plane kr(classes, n), less(classes, n);
            kernel.product.apply(r.view(), kr.view());
            inverse.apply(kr.view(), less.view());
            results.push_back(less);
        }
        Plane x(classes, n), kx(classes, n);
        for (Index m = 0; m < classes; ++m) {
            CHECK(std::equal(results[0].view().row(m), results[0].view().row(m) + n, results[1].view().row(m)));
            for (Index i = 0; i < n; ++i) x.at(m, i) = r.at(m, i) - results[0].at(m, i);
        }
        kernel.product.apply(x.view(), kx.view());
        for (Index m = 0; m < classes; ++m) {
            for (Index i = 0; i < n; ++i) {
                const double out = i % 9 == 4 ? 0.0 : coupled_product(weights, kx, m, i);
                // What is infinite counts as 50 times the others.
                CHECK_CLOSE(x.at(m, i) + out, r.at(m, i), unlimited ? 0.2 : 1e-6);
            }
        }
    }
}

/// `P (D - D 1 1'D / (spare + 1'D 1)) P x` of example i; without a spare the middle is D.
std::vector<double> centred_product(const Plane& weights, double spare, const Plane& x, Index i) {
    const Index k = x.classes();
    std::vector<double> out(k);
    double sum = spare, part = 0.0;
    for (Index m = 0; m < k; ++m) {
        sum += weights.at(m, i);
        part += out[m] = weights.at(m, i) * x.at(m, i);
    }
    for (Index m = 0; m < k && std::isfinite(spare); ++m) out[m] -= weights.at(m, i) * part / sum;
    take_mean_away(out);
    return out;
}

TEST(a_coupled_inverse_of_rows_without_means_is_the_inverse) {
    const Index n = 150, classes = 4;  // more examples than a task of columns has
    const Kernel<double> kernel(random_gram(n, 331), 0.5);
    const Blas blas = plain::blas();
    Random random(332);
    for (const bool limited : {false, true}) {
        Plane weights = random_plane(classes, n, random), r = random_plane(classes, n, random);
        std::vector<double> spare, row(classes);
        for (Index i = 0; i < n; ++i) {
            for (Index m = 0; m < classes; ++m) {
                weights.at(m, i) = (i + m) % 5 == 0 ? 0.0 : std::exp(2.0 * weights.at(m, i));
                row[m] = r.at(m, i);
            }
            take_mean_away(row);
            for (Index m = 0; m < classes; ++m) r.at(m, i) = row[m];
            if (limited) spare.push_back(std::exp(random.normal()));
        }
        std::vector<Plane> results;
        Plane kr(classes, n), kx(classes, n), x(classes, n);
        kernel.product.apply(r.view(), kr.view());
        for (const int threads : {1, 3}) {
            ThreadPool pool(threads);
            CoupledInverse<double> inverse(kernel.product, classes, true, pool, blas);
            inverse.choose(weights.view(), weights.view(), 0.0, spare);
            CHECK(inverse.factor(kernel.control));
            Plane less(classes, n);
            inverse.apply(kr.view(), less.view());
            results.push_back(less);
        }
        for (Index i = 0; i < n; ++i) {
            for (Index m = 0; m < classes; ++m) {
                row[m] = r.at(m, i) - results[0].at(m, i);
                CHECK(results[0].at(m, i) == results[1].at(m, i));
            }
            take_mean_away(row);
            for (Index m = 0; m < classes; ++m) x.at(m, i) = row[m];
        }
        kernel.product.apply(x.view(), kx.view());
        for (Index i = 0; i < n; ++i) {
            const auto out = centred_product(weights, limited ? spare[i] : kInfinity, kx, i);
            for (Index m = 0; m < classes; ++m) CHECK_CLOSE(x.at(m, i) + out[m], r.at(m, i), 1e-6);
        }
    }
}

TEST(factors_by_blocks_are_those_of_the_whole) {
    const Blas blas = plain::blas();
    Random random(326);
    for (const Index n : {1, 5, 128, 129, 300}) {
        const Matrix gram = random_gram(n, 327);
        std::vector<double> matrix = gram.values, x(n), product(n, 0.0);
        for (Index i = 0; i < n; ++i) matrix[i * n + i] += 0.1;
        for (double& v : x) v = random.normal();
        for (Index i = 0; i < n; ++i) {
            for (Index j = 0; j < n; ++j) product[i] += matrix[i * n + j] * x[j];
        }
        ThreadPool alone(1), together(3);
        Control control;
        std::vector<double> same = matrix;
        CHECK(factor_by_blocks(matrix.data(), n, blas, alone, control));
        CHECK(factor_by_blocks(same.data(), n, blas, together, control) && same == matrix);
        solve_triangles(matrix.data(), n, product.data());
        for (Index i = 0; i < n; ++i) CHECK_CLOSE(product[i], x[i], 1e-8);
    }
    std::vector<double> indefinite{1.0, 2.0, 2.0, 1.0};
    ThreadPool pool(1);
    Control control;
    CHECK(!factor_by_blocks(indefinite.data(), 2, blas, pool, control));
}

TEST(interior_points_reach_the_optimum) {
    for (const double C : {0.01, 1.0, 100.0, 1e4}) {
        const Data data(4, 25, C, 318);
        for_losses([&](const auto& loss, const plain::Loss& plain_loss) {
            for (const double weight : {0.0, 1.0}) {
                auto outcome = solve<double>(loss, data, weight, false, 1e-6);
                CHECK(outcome.result.status == Status::converged && outcome.result.gap <= 1e-6);
                CHECK(outcome.result.steps <= 60);
                make_feasible(plain_loss, data, outcome.machine);
                const auto w = plain::evaluate(plain_loss, data.gram, data.labels, data.cost_bounds, outcome.machine);
                // The rows are rounded to their limits: the dual says how near the optimum they still are.
                CHECK_CLOSE(w.dual, outcome.result.dual, 1e-4 * std::abs(w.dual));
                CHECK(w.dual <= outcome.result.primal * (1.0 + 1e-9));
            }
        });
    }
}

TEST(interior_points_reach_the_optimum_of_absolute_margins) {
    for (const double C : {0.01, 1.0, 100.0}) {
        const Data data(4, 25, C, 318);
        for (const auto& plain_loss : plain::absolute_losses(4)) {
            for (const double weight : {0.0, 1.0}) {
                auto outcome = std::visit(
                    [&](const auto& loss) -> Outcome {
                        if constexpr (AbsoluteLimitedLoss<std::decay_t<decltype(loss)>>) {
                            return solve<double>(loss, data, weight, false, 1e-5);
                        } else {
                            throw std::logic_error("no loss of absolute margins");
                        }
                    },
                    plain_loss.core);
                CHECK(outcome.result.status == Status::converged && outcome.result.gap <= 1e-5);
                CHECK(outcome.result.steps <= 60);
                for (double& b : outcome.machine.rows) b *= 1.0 - 1e-13;  // what rounding adds to a full row
                const auto w = plain::evaluate(plain_loss, data.gram, data.labels, data.cost_bounds, outcome.machine);
                CHECK_CLOSE(w.dual, outcome.result.dual, 1e-4 * std::abs(w.dual));
                CHECK(w.dual <= outcome.result.primal * (1.0 + 1e-9));
            }
        }
    }
}

TEST(interior_points_with_a_free_bias_balance_the_columns) {
    for (const double C : {1.0, 100.0}) {
        const Data data(3, 30, C, 319);
        for_losses([&](const auto& loss, const plain::Loss&) {
            const auto outcome = solve<double>(loss, data, 0.0, true, 1e-6);
            CHECK(outcome.result.status == Status::converged);
            double size = 0.0;
            for (const double b : outcome.machine.rows) size += std::abs(b);
            for (const double sum : outcome.machine.column_sums()) CHECK_CLOSE(sum, 0.0, 1e-3 * size);
            const double bias = std::accumulate(outcome.result.bias.begin(), outcome.result.bias.end(), 0.0);
            CHECK_CLOSE(bias, 0.0, 1e-6);
        });
    }
}

TEST(interior_points_do_not_depend_on_the_threads) {
    const Data data(3, 120, 10.0, 320);
    for_losses([&](const auto& loss, const plain::Loss&) {
        for (const bool free_bias : {false, true}) {
            const auto alone = solve<float>(loss, data, 0.0, free_bias, 1e-4);
            const auto together = solve<float>(loss, data, 0.0, free_bias, 1e-4, 3);
            CHECK(alone.machine.rows == together.machine.rows && alone.result.bias == together.result.bias);
            CHECK(alone.result.products == together.result.products);
        }
    });
}

TEST(short_steps_in_a_row_are_the_last) {
    const Data data(3, 40, 10.0, 321);
    Kernel<double> kernel(data.gram, 0.0);
    InteriorPoint<double> method(problem_of(CrammerSinger(), data, false), kernel.product, kernel.pool, plain::blas(),
                                 kernel.control, {.shortest = 2.0, .most_short = 3});  // no step is longer than 1
    const auto result = method.run(1e-6);
    CHECK(result.status == Status::precision && result.steps == 3 && result.gap > 1e-6);
}

TEST(interior_points_stop_when_asked) {
    const Data data(3, 40, 10.0, 321);
    Kernel<double> kernel(data.gram, 0.0);
    kernel.control.cancel();
    InteriorPoint<double> method(problem_of(CrammerSinger(), data, false), kernel.product, kernel.pool, plain::blas(),
                                 kernel.control);
    const auto result = method.run(1e-6);
    CHECK(result.status == Status::stopped && result.gap == kInfinity);
}
