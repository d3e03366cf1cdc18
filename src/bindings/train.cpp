#include "machine/train.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>
#include <stdexcept>

#include "machine/path_scores.hpp"
#include "session.hpp"

namespace polymargin::bindings {
namespace {

/// Rows (first begin, first end, second begin, second end, positive begin, positive end); an empty second range is left
/// out.
std::vector<BinaryProblem> problems_from(const Array<const Index, nb::shape<-1, 6>>& table) {
    std::vector<BinaryProblem> problems(table.shape(0));
    for (std::size_t p = 0; p < problems.size(); ++p) {
        const Index* row = table.data() + 6 * p;
        problems[p].segments.push_back({row[0], row[1]});
        if (row[3] > row[2]) problems[p].segments.push_back({row[2], row[3]});
        problems[p].positive = {row[4], row[5]};
    }
    return problems;
}

std::vector<BinaryStart> starts_from(const Vector<Index>& begins, const Vector<Index>& support,
                                     const Vector<double>& beta) {
    std::vector<BinaryStart> starts(begins.size() - 1);
    for (std::size_t p = 0; p < starts.size(); ++p) {
        starts[p].support.assign(support.data() + begins.data()[p], support.data() + begins.data()[p + 1]);
        starts[p].beta.assign(beta.data() + begins.data()[p], beta.data() + begins.data()[p + 1]);
    }
    return starts;
}

/// The results side by side, an array for each quantity; coefficients of problem p are [starts[p], starts[p + 1]).
nb::dict to_python(const TrainReport& report) {
    std::vector<Index> starts{0}, support, iterations;
    std::vector<double> beta, intercept, primal, dual, violation, held_out;
    nb::list status;
    for (const BinaryResult& r : report.results) {
        support.insert(support.end(), r.support.begin(), r.support.end());
        beta.insert(beta.end(), r.beta.begin(), r.beta.end());
        held_out.insert(held_out.end(), r.held_out.begin(), r.held_out.end());
        starts.push_back(static_cast<Index>(support.size()));
        intercept.push_back(r.intercept);
        primal.push_back(r.objectives.primal);
        dual.push_back(r.objectives.dual);
        violation.push_back(r.violation);
        iterations.push_back(r.iterations);
        status.append(name_of(r.status));
    }
    nb::dict out;
    out["starts"] = to_numpy(std::move(starts));
    out["support"] = to_numpy(std::move(support));
    out["beta"] = to_numpy(std::move(beta));
    out["intercept"] = to_numpy(std::move(intercept));
    out["primal"] = to_numpy(std::move(primal));
    out["dual"] = to_numpy(std::move(dual));
    out["violation"] = to_numpy(std::move(violation));
    out["iterations"] = to_numpy(std::move(iterations));
    out["held_out"] = to_numpy(std::move(held_out));
    out["status"] = status;
    out["evaluations"] = report.evaluations;
    out["single_precision"] = report.single_precision;
    out["whole_matrix"] = report.whole_matrix;
    return out;
}

BinaryFamily family_from(const Array<const Index, nb::shape<-1, 6>>& problems, const Vector<double>& upper,
                         const std::optional<nb::tuple>& start, double tolerance, Index max_iterations) {
    BinaryFamily family;
    family.problems = problems_from(problems);
    family.upper.assign(upper.data(), upper.data() + upper.size());
    if (start) {
        family.starts = starts_from(nb::cast<Vector<Index>>((*start)[0]), nb::cast<Vector<Index>>((*start)[1]),
                                    nb::cast<Vector<double>>((*start)[2]));
    }
    family.settings.tolerance = tolerance;
    family.settings.max_iterations = max_iterations;
    return family;
}

nb::dict bound_train(Session& session, const Array<const Index, nb::shape<-1, 6>>& problems,
                     const Vector<double>& upper, const std::optional<nb::tuple>& start,
                     const std::optional<Vector<Index>>& folds, bool refine, double tolerance, Index max_iterations,
                     double time_limit, const nb::object& progress) {
    BinaryFamily family = family_from(problems, upper, start, tolerance, max_iterations);
    if (folds) family.folds.assign(folds->data(), folds->data() + folds->size());
    family.refine = refine;
    Control control(time_limit);
    TrainReport report;
    run_without_gil([&] { report = train(session.kernel, family, control); }, control, progress);
    return to_python(report);
}

nb::dict bound_train_paths(Session& session, const Array<const Index, nb::shape<-1, 6>>& problems,
                           const Array<const double, nb::shape<-1, -1>>& upper, const Vector<double>& costs,
                           double tolerance, Index max_iterations, const nb::object& progress) {
    BinaryFamily family;
    family.problems = problems_from(problems);
    for (std::size_t row = 0; row < upper.shape(0); ++row) {
        family.paths.emplace_back(std::span(costs.data(), costs.size()),
                                  std::span(upper.data() + row * upper.shape(1), upper.shape(1)));
    }
    family.refine = false;
    family.settings.tolerance = tolerance;
    family.settings.max_iterations = max_iterations;
    Control control;
    TrainReport report;
    run_without_gil([&] { report = train(session.kernel, family, control); }, control, progress);
    return to_python(report);
}

void bound_path_scores(const Session& session, const Vector<Index>& rows,
                       const Array<const Index, nb::shape<-1, 6>>& problems, const Vector<Index>& starts,
                       const Vector<Index>& support, const Vector<double>& beta, const Vector<double>& intercept,
                       const Array<double, nb::ndim<3>>& out, int threads) {
    const TrainingData& training = session.kernel.training();
    const auto* matrix = std::get_if<PrecomputedView>(&training.data);
    if (matrix == nullptr) throw std::invalid_argument("scores of a path are taken from a kernel matrix");
    const PathSolution solution{problems_from(problems), as_span(starts), as_span(support), as_span(beta),
                                as_span(intercept)};
    Control control;
    run_without_gil(
        [&] {
            ThreadPool pool(threads);
            path_scores(*matrix, training.order, as_span(rows), solution, {out.data(), out.size()},
                        session.kernel.blas(), {&pool, &control});
        },
        control, nb::none());
}

}  // namespace

void bind_train(nb::class_<Session>& session) {
    session.def("train", &bound_train, nb::arg("problems"), nb::arg("upper"), nb::arg("start").none(),
                nb::arg("folds").none(), nb::arg("refine"), nb::arg("tolerance"), nb::arg("max_iterations"),
                nb::arg("time_limit"), nb::arg("progress").none(),
                "Solve binary problems; returns their solutions side by side. With a fold for each example, also each "
                "example's decision values by the machines without its fold.");
    session.def("train_paths", &bound_train_paths, nb::arg("problems"), nb::arg("upper"), nb::arg("costs"),
                nb::arg("tolerance"), nb::arg("max_iterations"), nb::arg("progress").none(),
                "Solve binary problems for ascending costs, which are factors of the bounds, and this for each row of "
                "bounds; returns the solutions side by side, those of the first row and its first cost first.");
    session.def("path_scores", &bound_path_scores, nb::arg("rows"), nb::arg("problems"), nb::arg("starts"),
                nb::arg("support"), nb::arg("beta"), nb::arg("intercept"), nb::arg("out"), nb::arg("threads"),
                "Write the scores that some rows of the kernel matrix get from problems solved for a path of costs to "
                "`out`, by problem, row and cost.");
}

}  // namespace polymargin::bindings
