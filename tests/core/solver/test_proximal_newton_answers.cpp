#include "solver/proximal_newton_answers.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "check.hpp"
#include "fixtures.hpp"
#include "linear_problems.hpp"

using namespace polymargin;
using namespace polymargin::proximal_newton;
using fixtures::LinearProblem;
using fixtures::Random;

namespace {

/// Rows of any scores, and what they answer.
template <class Loss, class Real>
struct Answered {
    Index classes, width;
    std::vector<Real> scores, centre, shift, answers, curvatures;
    std::vector<Example> examples;
    std::vector<std::uint64_t> faces;
    AnswerSums sums;

    Answered(const Loss& loss, Index k, double spread, std::uint64_t seed)
        : classes(k), width((k + RowVector<Real>::count - 1) / RowVector<Real>::count * RowVector<Real>::count) {
        constexpr Index count = 60;
        Random random(seed);
        for (Index t = 0; t < count; ++t) {
            examples.push_back({random.below(k), random.uniform(0.1, 10.0)});
            curvatures.push_back(static_cast<Real>(random.uniform(0.01, 1.0)));
            const auto row =
                fixtures::feasible_row(fixtures::plain_of(loss), k, examples[t].label, examples[t].cost_bound, random);
            for (Index m = 0; m < width; ++m) {
                scores.push_back(m < k ? static_cast<Real>(spread * random.normal()) : Real(0));
                centre.push_back(m < k ? static_cast<Real>(row[m]) : Real(0));
            }
        }
        for (Index m = 0; m < width; ++m) shift.push_back(m < k ? static_cast<Real>(random.normal()) : Real(0));
        answers.assign(scores.size(), Real(7));
        faces.assign(count, 7);
        sums = answer(loss, tile());
    }
    [[nodiscard]] AnswerTile<Real> tile() {
        return {.count = std::ssize(examples),
                .classes = classes,
                .width = width,
                .scores = scores.data(),
                .centre = centre.data(),
                .shift = shift.data(),
                .examples = examples.data(),
                .curvatures = curvatures.data(),
                .answers = answers.data(),
                .faces = faces.data()};
    }
};

/// The losses, the linear term and the padding are those of the answers.
template <class Loss, class Real>
void check_sums(const Loss& loss, const Answered<Loss, Real>& rows, double tolerance) {
    double losses = 0.0, linear = 0.0;
    for (std::size_t t = 0; t < rows.examples.size(); ++t) {
        const Example& example = rows.examples[t];
        const Real* s = rows.scores.data() + t * rows.width;
        const std::vector<double> scores(s, s + rows.classes);
        losses += example.cost_bound * loss.loss(scores, example.label);
        const auto offsets = loss.offsets(example.label);
        for (Index m = 0; m < rows.width; ++m) {
            const auto b = static_cast<double>(rows.answers[t * rows.width + m]);
            CHECK(m < rows.classes || b == 0.0);
            if (m < rows.classes) linear += (offsets[m] + static_cast<double>(rows.shift[m])) * b;
        }
    }
    CHECK_CLOSE(rows.sums.losses, losses, tolerance * losses);
    CHECK_CLOSE(rows.sums.linear, linear, tolerance * (std::abs(linear) + losses));
}

/// The row that is best by the distance of the rows.
template <class Loss, class Real>
void check_steps(const Loss& loss, Index k, double spread, double tolerance) {
    Answered<Loss, Real> rows(loss, k, spread, 5), plain = rows;
    check_sums(loss, rows, tolerance);
    for (Index t = 0; t < std::ssize(rows.examples); ++t) (void)answer_plainly(loss, plain.tile(), t);
    for (std::size_t t = 0; t < rows.examples.size(); ++t) {
        for (Index m = 0; m < rows.width; ++m) {
            CHECK_CLOSE(rows.answers[t * rows.width + m], plain.answers[t * rows.width + m],
                        tolerance * rows.examples[t].cost_bound);
        }
    }
}

}  // namespace

TEST(vectors_answer_as_steps_of_the_loss_do) {
    for (const Index k : {2, 3, 8, 10, 31}) {
        for (const double spread : {0.01, 1.0, 100.0}) {
            check_steps<OneVsRest, float>({}, k, spread, 2e-3);
            check_steps<OneVsRest, double>({}, k, spread, 1e-10);
            check_steps<CrammerSinger, float>({}, k, spread, 2e-3);
            check_steps<CrammerSinger, double>({}, k, spread, 1e-10);
        }
    }
}

TEST(pairs_answer_each_for_itself) {
    const WestonWatkins loss;
    for (const Index k : {2, 5, 10, 20}) {
        const Answered<WestonWatkins, double> rows(loss, k, 2.0, 6);
        check_sums(loss, rows, 1e-10);
        for (std::size_t t = 0; t < rows.examples.size(); ++t) {
            const auto [y, C] = rows.examples[t];
            const double* s = rows.scores.data() + t * rows.width;
            double sum = 0.0;
            std::uint64_t face = 0;
            for (Index m = 0; m < k; ++m) {
                if (m == y) continue;
                const double hinge = s[y] - s[m] - 2.0;
                const double a = std::clamp(-rows.centre[t * rows.width + m] - hinge / rows.curvatures[t], 0.0, C);
                CHECK_CLOSE(-rows.answers[t * rows.width + m], a, 1e-10 * C);
                sum += a;
                if (a > 0.0 && a < C) face |= std::uint64_t{1} << m | std::uint64_t{1} << y;
            }
            CHECK_CLOSE(rows.answers[t * rows.width + y], sum, 1e-10 * C);
            CHECK(rows.faces[t] == face);
        }
    }
}

TEST(curvature_is_the_slope_of_the_answers) {
    constexpr Index k = 6;
    constexpr double step = 1e-7;
    Random random(8);
    fixtures::for_row_losses([&](const auto& loss) {
        using Loss = std::decay_t<decltype(loss)>;
        Answered<Loss, double> here(loss, k, 0.5, 9), there = here;
        std::vector<double> along(here.scores.size(), 0.0);
        for (std::size_t e = 0; e < along.size(); ++e) {
            if (static_cast<Index>(e) % here.width < k) along[e] = random.normal();
            there.scores[e] += step * along[e];
        }
        (void)answer(loss, there.tile());
        Index curved = 0;
        for (std::size_t t = 0; t < here.examples.size(); ++t) {
            if (here.faces[t] != there.faces[t]) continue;  // a kink lies between
            double* row = along.data() + t * here.width;
            if (here.faces[t] == 0) {
                std::fill_n(row, k, 0.0);
            } else if (are_pairs(loss)) {
                curve_pairs(row, here.width, here.faces[t], 1.0 / here.curvatures[t], here.examples[t].label);
            } else {
                curve_row(row, here.width, here.faces[t], 1.0 / here.curvatures[t], Loss::kRowsSumToZero);
            }
            for (Index m = 0; m < k; ++m) {
                const std::size_t at = t * here.width + m;
                CHECK_CLOSE((here.answers[at] - there.answers[at]) / step, row[m], 1e-4);
            }
            curved += here.faces[t] != 0;
        }
        CHECK(curved > 5);
    });
}

TEST(hinges_are_rounded_off_evenly_around_the_middle) {
    // Where classes are level with their hinges, a little to either side is answered alike.
    fixtures::for_row_losses([](const auto& loss) {
        for (const Index k : {2, 4}) {
            const Example example{1, 2.0};
            std::vector<double> middle(k);
            set_middle(loss, example, k, middle.data());
            const auto plain = fixtures::plain_of(loss);
            CHECK_CLOSE(plain.infeasibility(middle, example.label, example.cost_bound), 0.0, 1e-12);
        }
    });
}
