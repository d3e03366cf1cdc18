#include "machine/train_linear.hpp"

#include <stdexcept>

#include "audit.hpp"
#include "check.hpp"
#include "fixtures.hpp"
#include "linear_problems.hpp"
#include "machine/train_binary.hpp"
#include "machine/train_joint.hpp"
#include "plain_blas.hpp"
#include "plain_losses.hpp"

using namespace polymargin;
using fixtures::LinearProblem;
using fixtures::Matrix;
using fixtures::Random;

namespace {

// A solver that does not end fails its test; the limit is far beyond what any of these takes.
constexpr double kTimeLimit = 5.0;

LinearRequest request_for(const LinearProblem& problem, const AnyLoss& loss, BiasKind bias, double gap = 1e-3) {
    LinearRequest request;
    request.data = problem.x.dense();
    request.loss = loss;
    request.bias = bias;
    request.order = problem.order;
    request.labels = problem.labels;
    request.cost_bounds = problem.cost_bounds;
    request.classes = problem.classes;
    request.gap = gap;
    return request;
}

LinearReport run(const LinearRequest& request) {
    Control control(kTimeLimit);
    return train_linear(request, plain::blas(), control);
}

template <class Visit>
void for_machines(Visit&& visit) {
    for (const AnyLoss& loss : {AnyLoss(WestonWatkins()), AnyLoss(CrammerSinger()), AnyLoss(OneVsRest())}) {
        for (const BiasKind bias : {BiasKind::none, BiasKind::regularized, BiasKind::free}) visit(loss, bias);
    }
}

double gap_of(double primal, double dual) {
    const double scale = std::max(std::abs(primal), std::abs(dual));
    return scale > 0.0 ? (primal - dual) / scale : 0.0;
}

/// The report as a machine whose scores are those that the caller computes; checks what does not take a solution.
plain::Machine machine_of(const LinearProblem& problem, const LinearRequest& request, const LinearReport& report) {
    const Index k = problem.classes, n = problem.size();
    plain::Machine machine{.classes = k, .rows = std::vector<double>(n * k, 0.0), .weight = 0.0, .shift = {}};
    CHECK(std::ssize(report.starts) == n + 1 && report.starts[0] == 0);
    CHECK(report.starts[n] == std::ssize(report.columns) && report.columns.size() == report.coefficients.size());
    for (Index i = 0; i < n; ++i) {
        for (Index at = report.starts[i]; at < report.starts[i + 1]; ++at) {
            CHECK(at == report.starts[i] || report.columns[at] > report.columns[at - 1]);
            CHECK(report.columns[at] >= 0 && report.columns[at] < k);
            CHECK(report.coefficients[at] != 0.0 || request.method == LinearMethod::exponentiated_gradient);
            machine.rows[i * k + report.columns[at]] = report.coefficients[at];
        }
    }
    CHECK(std::ssize(report.intercept) == k && std::ssize(report.visits) == k);
    // What sums are rounded by: the coefficients may have been as large as their bounds.
    double size = std::accumulate(problem.cost_bounds.begin(), problem.cost_bounds.end(), 0.0);
    for (const double b : machine.rows) size += std::abs(b);
    if (request.bias == BiasKind::regularized) machine.weight = 1.0;
    if (request.bias == BiasKind::free) machine.shift = report.intercept;
    const auto sums = machine.column_sums();
    for (Index m = 0; m < k; ++m) {
        if (request.bias == BiasKind::none) CHECK(report.intercept[m] == 0.0);
        if (request.bias == BiasKind::regularized) CHECK_CLOSE(report.intercept[m], sums[m], 1e-12 * size);
        if (request.bias == BiasKind::free) CHECK_CLOSE(sums[m], 0.0, 1e-12 * size);
    }
    const Matrix weights = problem.weights(machine.rows);
    CHECK(report.weights.size() == weights.values.size());
    for (std::size_t e = 0; e < weights.values.size(); ++e) {
        CHECK_CLOSE(report.weights[e], weights.values[e], 1e-12 * std::max(1.0, size));
    }
    return machine;
}

/// The report is what it says it is, and its rows are feasible, by code that does not trust it.
plain::Evaluation check_honest(const LinearProblem& problem, const Matrix& gram, const LinearRequest& request,
                               const LinearReport& report) {
    const auto machine = machine_of(problem, request, report);
    const auto w = std::visit(
        [&](const auto& loss) {
            return plain::evaluate(fixtures::plain_of(loss), gram, problem.labels, problem.cost_bounds, machine);
        },
        request.loss);
    const double allowed = 1e-11 * (std::abs(w.primal) + std::abs(w.dual)) + 1e-14 * w.bound_total;
    CHECK_CLOSE(report.objectives.primal, w.primal, allowed);
    CHECK_CLOSE(report.objectives.dual, w.dual, allowed);
    CHECK(w.primal >= w.dual - allowed);
    return w;
}

void check_solved(const LinearProblem& problem, const Matrix& gram, const LinearRequest& request,
                  const LinearReport& report) {
    CHECK(report.status == Status::converged);
    CHECK(gap_of(report.objectives.primal, report.objectives.dual) <= request.gap);
    const auto w = check_honest(problem, gram, request, report);
    CHECK(gap_of(w.primal, w.dual) <= request.gap + 1e-10);
}

bool same(const LinearReport& a, const LinearReport& b) {
    return a.weights == b.weights && a.intercept == b.intercept && a.starts == b.starts && a.columns == b.columns &&
           a.coefficients == b.coefficients && a.objectives.primal == b.objectives.primal &&
           a.objectives.dual == b.objectives.dual && a.violation == b.violation && a.visits == b.visits &&
           a.status == b.status && a.single_precision == b.single_precision;
}

/// Begin where the other ended.
void start_from(LinearRequest& request, const LinearProblem& problem, const LinearReport& report) {
    const auto machine = machine_of(problem, request, report);
    for (Index i = 0; i < problem.size(); ++i) {
        if (report.starts[i] == report.starts[i + 1]) continue;
        request.start_support.push_back(i);
        const auto row = machine.row(i);
        request.start_rows.insert(request.start_rows.end(), row.begin(), row.end());
    }
    request.start_bias = report.intercept;
}

}  // namespace

TEST(linear_machines_close_the_gap_they_are_asked_to) {
    for (const double density : {0.3, 1.0}) {
        const LinearProblem problem(4, 70, 8, density, 371);
        const Matrix gram = problem.gram();
        for_machines([&](const AnyLoss& loss, BiasKind bias) {
            for (const double gap : {1e-3, 1e-8}) {
                auto request = request_for(problem, loss, bias, gap);
                const auto report = run(request);
                CHECK(!report.single_precision);
                check_solved(problem, gram, request, report);
                request.data = problem.csr.view();
                const auto sparse = run(request);
                // The solver does not see which it is, but dense examples are centred for a free bias.
                if (bias != BiasKind::free) CHECK(same(report, sparse));
                CHECK_CLOSE(sparse.objectives.dual, report.objectives.dual, 2 * gap * report.objectives.dual);
            }
        });
    }
}

TEST(squared_hinges_close_the_gap_they_are_asked_to) {
    for (const double density : {0.3, 1.0}) {
        const LinearProblem problem(4, 70, 8, density, 371);
        const Matrix gram = problem.gram();
        for (const AnyLoss& loss :
             {AnyLoss(SquaredWestonWatkins()), AnyLoss(SquaredCrammerSinger()), AnyLoss(SquaredOneVsRest())}) {
            for (const BiasKind bias : {BiasKind::none, BiasKind::regularized, BiasKind::free}) {
                for (const double gap : {1e-3, 1e-8}) {
                    const auto request = request_for(problem, loss, bias, gap);
                    check_solved(problem, gram, request, run(request));
                }
            }
        }
    }
}

TEST(two_classes_and_many) {
    for (const Index k : {2, 45}) {
        const LinearProblem problem(k, 70, 7, 0.5, 372);
        const Matrix gram = problem.gram();
        for_machines([&](const AnyLoss& loss, BiasKind bias) {
            const auto request = request_for(problem, loss, bias, 1e-3);
            check_solved(problem, gram, request, run(request));
        });
    }
}

TEST(larger_linear_machines_are_trained_in_single_precision) {
    const LinearProblem problem(40, 412, 10, 0.6, 373, 0.01);
    const Matrix gram = problem.gram();
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        const auto request = request_for(problem, loss, bias, 1e-3);
        const auto report = run(request);
        CHECK(report.single_precision);
        check_solved(problem, gram, request, report);
    });
}

TEST(newton_steps_end_with_weights_of_their_own) {
    const LinearProblem problem(8, 2100, 10, 0.6, 377, 0.1);
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        auto request = request_for(problem, loss, bias, 1e-3);
        const auto report = run(request);
        request.settings.newton = false;
        const auto plain = run(request);
        CHECK(report.status == Status::converged && plain.status == Status::converged);
        const auto [primal, dual] = report.objectives;
        CHECK(primal >= dual && gap_of(primal, dual) <= 1e-3);
        CHECK(dual <= plain.objectives.primal && plain.objectives.dual <= primal);
        // The primal is that of the weights and intercepts that are reported.
        double own = 0.0;
        for (const double w : report.weights) own += 0.5 * w * w;
        for (const double b : report.intercept) own += bias == BiasKind::regularized ? 0.5 * b * b : 0.0;
        for (Index i = 0; i < problem.size(); ++i) {
            std::vector<double> scores = report.intercept;
            for (Index f = 0; f < problem.x.columns; ++f) {
                for (Index m = 0; m < 8; ++m) {
                    scores[m] += problem.x.at(problem.order[i], f) * report.weights[f * 8 + m];
                }
            }
            own += problem.cost_bounds[i] *
                   std::visit([&](const auto& l) { return l.loss(scores, problem.labels[i]); }, loss);
        }
        CHECK_CLOSE(own, primal, 1e-10 * primal);
        // And it is warm where it starts from its own coefficients.
        for (Index i = 0; i < problem.size(); ++i) {
            request.start_support.push_back(i);
            request.start_rows.resize((i + 1) * 8, 0.0);
            for (Index at = report.starts[i]; at < report.starts[i + 1]; ++at) {
                request.start_rows[i * 8 + report.columns[at]] = report.coefficients[at];
            }
        }
        request.start_bias = report.intercept;
        request.settings.newton = true;
        CHECK(run(request).visits[0] < report.visits[0]);
    });
}

TEST(newton_steps_are_for_as_many_examples_as_the_settings_say) {
    const LinearProblem problem(8, 1500, 10, 0.6, 377, 0.1);
    auto request = request_for(problem, CrammerSinger(), BiasKind::none, 1e-3);
    const auto usual = run(request);
    request.settings.newton_from = 1500;
    const auto newton = run(request);
    request.settings.newton = false;
    const auto plain = run(request);
    CHECK(usual.weights == plain.weights && newton.weights != plain.weights);
}

TEST(linear_machines_are_those_of_the_linear_kernel) {
    const LinearProblem problem(3, 60, 5, 1.0, 374);
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        if (std::holds_alternative<OneVsRest>(loss) && bias != BiasKind::free) return;
        const auto report = run(request_for(problem, loss, bias, 1e-8));
        CHECK(report.status == Status::converged);
        Control control(kTimeLimit);
        if (std::holds_alternative<OneVsRest>(loss)) {
            // The binary machines want the classes one after the other.
            BinaryRequest binary;
            binary.data = problem.x.dense();
            binary.kernel = {.type = KernelType::linear};
            binary.budget_bytes = Index{1} << 30;
            std::vector<Range> classes;
            for (Index m = 0; m < 3; ++m) {
                const Index begin = std::ssize(binary.order);
                for (Index i = 0; i < problem.size(); ++i) {
                    if (problem.labels[i] != m) continue;
                    binary.order.push_back(problem.order[i]);
                    binary.cost_bounds.push_back(problem.cost_bounds[i]);
                }
                classes.push_back({begin, std::ssize(binary.order)});
            }
            for (const Range& positive : classes) {
                binary.problems.push_back(audit::against_rest(positive, {0, problem.size()}));
            }
            binary.settings.tolerance = 1e-8;
            double dual = 0.0;
            for (const auto& result : train_binary(binary, plain::blas(), control).results)
                dual += result.objectives.dual;
            CHECK_CLOSE(report.objectives.dual, dual, 1e-6 * dual);
            return;
        }
        JointRequest joint;
        joint.data = problem.x.dense();
        joint.kernel = {.type = KernelType::linear};
        joint.order = problem.order;
        joint.cost_bounds = problem.cost_bounds;
        joint.budget_bytes = Index{1} << 30;
        if (std::holds_alternative<CrammerSinger>(loss)) joint.loss = CrammerSinger();
        joint.bias = bias;
        joint.labels = problem.labels;
        joint.classes = 3;
        joint.settings.tolerance = 1e-7;
        const auto expected = train_joint(joint, plain::blas(), control);
        CHECK(expected.status == Status::converged);
        CHECK_CLOSE(report.objectives.dual, expected.objectives.dual, 1e-6 * expected.objectives.dual);
        CHECK_CLOSE(report.objectives.primal, expected.objectives.dual, 1e-6 * expected.objectives.dual);
    });
}

TEST(one_vs_rest_is_one_machine_for_each_class) {
    const LinearProblem problem(5, 100, 6, 1.0, 375);
    for (const BiasKind bias : {BiasKind::none, BiasKind::regularized, BiasKind::free}) {
        const auto whole = run(request_for(problem, OneVsRest(), bias, 1e-8));
        double dual = 0.0;
        for (Index m = 0; m < 5; ++m) {
            auto request = request_for(problem, OneVsRest(), bias, 1e-8);
            request.classes = 1;
            for (Index& y : request.labels) y = y == m ? 0 : -1;  // an example of no class that is there
            const auto alone = run(request);
            CHECK(alone.status == Status::converged && std::ssize(alone.intercept) == 1);
            dual += alone.objectives.dual;
            for (Index f = 0; f < 6; ++f) CHECK_CLOSE(alone.weights[f], whole.weights[f * 5 + m], 1e-2);
        }
        CHECK_CLOSE(whole.objectives.dual, dual, 2e-8 * dual);
    }
}

TEST(linear_machines_do_not_depend_on_the_threads) {
    const LinearProblem small(4, 90, 6, 0.4, 376), large(16, 1040, 6, 1.0, 377, 0.01);
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        for (const LinearProblem* problem : {&small, &large}) {
            auto request = request_for(*problem, loss, bias, problem == &small ? 1e-4 : 1e-2);
            const auto alone = run(request);
            CHECK(alone.status == Status::converged && alone.single_precision == (problem == &large));
            for (const int threads : {2, 4}) {
                request.threads = threads;
                CHECK(same(alone, run(request)));
            }
        }
    });
}

TEST(every_heuristic_can_be_left_out) {
    const LinearProblem problem(4, 130, 6, 0.5, 378);
    const Matrix gram = problem.gram();
    const SequentialSettings changed[] = {{.seed = 1}, {.shuffling = false}, {.shrinking = false}, {.cooling = false}};
    int different[std::size(changed)] = {};
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        const double gap = bias == BiasKind::free ? 1e-4 : 1e-6;
        auto request = request_for(problem, loss, bias, gap);
        const auto usual = run(request);
        for (std::size_t s = 0; s < std::size(changed); ++s) {
            request.settings = changed[s];
            const auto other = run(request);
            check_solved(problem, gram, request, other);
            CHECK_CLOSE(other.objectives.dual, usual.objectives.dual, 1.01 * gap * usual.objectives.primal);
            different[s] += !same(usual, other);
        }
    });
    for (const int machines : different) CHECK(machines > 0);
}

TEST(linear_machines_take_warm_starts) {
    for (const Index k : {2, 5}) {
        const LinearProblem problem(k, 80, 6, 0.5, 379);
        const Matrix gram = problem.gram();
        for_machines([&](const AnyLoss& loss, BiasKind bias) {
            const auto cold = run(request_for(problem, loss, bias, 1e-6));
            auto request = request_for(problem, loss, bias, 1e-4);
            start_from(request, problem, cold);
            const auto warm = run(request);
            check_solved(problem, gram, request, warm);
            for (Index m = 0; m < k; ++m) CHECK(warm.visits[m] <= 2 * problem.size());
            // Any rows will do, feasible or not.
            Random random(380);
            for (double& b : request.start_rows) b = random.normal();
            check_solved(problem, gram, request, run(request));
        });
    }
}

TEST(linear_machines_keep_limits_and_say_so) {
    const LinearProblem problem(4, 200, 6, 0.6, 381);
    const Matrix gram = problem.gram();
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        auto request = request_for(problem, loss, bias, 1e-10);
        for (const Index limit : {0, 100, 500}) {
            request.settings.max_visits = limit;
            const auto limited = run(request);
            CHECK(limited.status == Status::max_iterations);
            // A limit is looked for now and then; the groups of an uncoupled machine share it.
            for (const Index visits : limited.visits) CHECK(visits <= limit + 64);
            check_honest(problem, gram, request, limited);
            if (limit > 0) CHECK(limited.objectives.primal > 0.0 && !limited.coefficients.empty());
        }
        request.settings.max_visits = -1;
        Control cancelled, late(0.0);
        cancelled.cancel();
        const auto stopped = train_linear(request, plain::blas(), cancelled),
                   timed = train_linear(request, plain::blas(), late);
        CHECK(stopped.status == Status::stopped && timed.status == Status::time_limit);
        for (const auto& report : {stopped, timed}) {
            check_honest(problem, gram, request, report);
            CHECK(report.objectives.dual == 0.0 && report.coefficients.empty() && report.visits[0] == 0);
        }
        Control abandoned;
        abandoned.abandon();
        CHECK_THROWS(Abandoned, "nobody waits", (void)train_linear(request, plain::blas(), abandoned));
        // A start is not lost.
        const auto solved = run(request_for(problem, loss, bias, 1e-3));
        start_from(request, problem, solved);
        Control at_once;
        at_once.cancel();
        const auto kept = train_linear(request, plain::blas(), at_once);
        check_honest(problem, gram, request, kept);
        CHECK_CLOSE(kept.objectives.dual, solved.objectives.dual, 1e-9 * solved.objectives.dual);
    });
}

TEST(a_time_limit_ends_what_would_not_end) {
    const LinearProblem problem(4, 300, 6, 0.6, 382);
    const Matrix gram = problem.gram();
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        const auto request = request_for(problem, loss, bias, 0.0);
        Control control(0.02);
        const auto start = Control::Clock::now();
        const auto report = train_linear(request, plain::blas(), control);
        CHECK(std::chrono::duration<double>(Control::Clock::now() - start).count() < 2.0);
        CHECK(report.status != Status::converged || report.objectives.primal <= report.objectives.dual);
        check_honest(problem, gram, request, report);
    });
}

TEST(a_gap_that_rounding_hides_is_not_chased_forever) {
    const LinearProblem problem(3, 60, 5, 1.0, 387);
    const Matrix gram = problem.gram();
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        const auto request = request_for(problem, loss, bias, 1e-15);
        Control control(2.0);
        const auto report = train_linear(request, plain::blas(), control);
        CHECK(report.status == Status::converged || report.status == Status::precision);
        const auto w = check_honest(problem, gram, request, report);
        CHECK(gap_of(w.primal, w.dual) <= 1e-9);
    });
}

TEST(classes_without_examples) {
    LinearProblem problem(5, 120, 6, 1.0, 383);
    // None of the second group of one against all, none of one class in the middle, and one class only.
    for (const std::vector<Index>& present :
         {std::vector<Index>{0, 1}, std::vector<Index>{0, 1, 3, 4}, std::vector<Index>{2}}) {
        for (Index& y : problem.labels) y = present[y % std::ssize(present)];
        const Matrix gram = problem.gram();
        for_machines([&](const AnyLoss& loss, BiasKind bias) {
            const auto request = request_for(problem, loss, bias, 1e-6);
            check_solved(problem, gram, request, run(request));
        });
    }
}

TEST(examples_of_nothing_but_zeros) {
    LinearProblem problem(3, 60, 5, 1.0, 384);
    std::ranges::fill(problem.x.values, 0.0);
    const Matrix gram = problem.gram();
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        const auto request = request_for(problem, loss, bias, 1e-6);
        const auto report = run(request);
        check_solved(problem, gram, request, report);
        CHECK(std::ranges::all_of(report.weights, [](double w) { return w == 0.0; }));
        // Without a bias all scores are zero and every example has the loss of a guess.
        if (bias != BiasKind::none) return;
        const double each = std::visit([](const auto& l) { return l.loss(std::vector<double>(3, 0.0), 0); }, loss);
        const double total = std::accumulate(problem.cost_bounds.begin(), problem.cost_bounds.end(), 0.0);
        CHECK_CLOSE(report.objectives.primal, each * total, 1e-9 * total);
    });
}

TEST(examples_of_no_weight_or_of_any_are_refused) {
    for (const double bound : {0.0, -1.0, plain::kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
        LinearProblem problem(3, 30, 5, 1.0, 385);
        problem.cost_bounds[7] = bound;
        for_machines([&](const AnyLoss& loss, BiasKind bias) {
            CHECK_THROWS(std::invalid_argument, "C must be positive and finite",
                         run(request_for(problem, loss, bias, 1e-3)));
        });
    }
}

TEST(too_large_values_are_refused_by_name) {
    LinearProblem problem(3, 30, 5, 1.0, 386);
    problem.x.at(problem.order[11], 3) = 1e200;
    const auto name = "row " + std::to_string(problem.order[11]) + ", column 3";
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        auto request = request_for(problem, loss, bias);
        request.threads = 2;
        CHECK_THROWS(std::invalid_argument, name, run(request));
    });
}

TEST(the_exponentiated_gradient_has_the_same_machine) {
    LinearProblem problem(4, 80, 6, 0.6, 388);
    const Matrix gram = problem.gram();
    for (const BiasKind bias : {BiasKind::none, BiasKind::regularized}) {
        auto request = request_for(problem, CrammerSinger(), bias, 1e-6);
        const auto expected = run(request);
        request.method = LinearMethod::exponentiated_gradient;
        request.gap = 1e-2;
        Control control(1.0);
        const auto report = train_linear(request, plain::blas(), control);
        check_solved(problem, gram, request, report);
        CHECK_CLOSE(report.objectives.dual, expected.objectives.dual, 1e-2 * expected.objectives.dual);
        Control cancelled;
        cancelled.cancel();
        CHECK(train_linear(request, plain::blas(), cancelled).status == Status::stopped);
        request.settings.max_visits = 100;
        const auto limited = run(request);
        CHECK(limited.status == Status::max_iterations && limited.visits[0] <= 101);
        check_honest(problem, gram, request, limited);
    }
    auto request = request_for(problem, WestonWatkins(), BiasKind::none);
    request.method = LinearMethod::exponentiated_gradient;
    CHECK_THROWS(std::invalid_argument, "simplex", run(request));
}

TEST(linear_machines_meet_the_violation_they_are_asked_to) {
    const LinearProblem problem(4, 70, 8, 1.0, 391);
    const Matrix gram = problem.gram();
    for_machines([&](const AnyLoss& loss, BiasKind bias) {
        auto request = request_for(problem, loss, bias, 1e-1);
        const auto by_gap = run(request);
        request.violation = 1e-3;
        const auto report = run(request);
        CHECK(report.status == Status::converged && report.violation <= 1e-3);
        CHECK(by_gap.violation > 1e-3);
        check_honest(problem, gram, request, report);
        request.settings.max_visits = 2 * problem.size();
        CHECK(run(request).status == Status::max_iterations);
    });
}
