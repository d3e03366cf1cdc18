#include "machine/train_binary.hpp"

#include <nanobind/stl/vector.h>

#include "machine/path_scores.hpp"
#include "session.hpp"

namespace polymargin::bindings {
namespace {

/// Validated once, used in many calls.
struct BinaryProblems {
    std::vector<BinaryProblem> all;
};
struct BinaryStarts {
    std::vector<BinaryStart> all;
};

struct BinaryResults {
    Owned<Index> starts, support;
    Owned<double> beta, intercept, primal, dual, violation;
    Owned<Index> iterations;
    Owned<double> held_out;
    std::vector<Status> status;
    Index evaluations;
    bool single_precision, whole_matrix;
};

BinaryResults results_of(const BinaryReport& report) {
    BinaryColumns all = side_by_side(report.results);
    const auto take = [](auto& values) { return owned(std::move(values)); };
    return {take(all.starts),   take(all.support),     take(all.beta),      take(all.intercept),
            take(all.primal),   take(all.dual),        take(all.violation), take(all.iterations),
            take(all.held_out), std::move(all.status), report.evaluations,  report.single_precision,
            report.whole_matrix};
}

template <class T>
Owned<T> slice(const Owned<T>& array, Index first, Index last) {
    return {array.data() + first, {static_cast<std::size_t>(last - first)}, nb::cast(array, nb::rv_policy::automatic)};
}

/// Some problems of many, without a copy of what is large.
BinaryResults part(const BinaryResults& r, Index first, Index last) {
    if (first < 0 || last < first || last > std::ssize(r.status)) throw nb::index_error("there are no such problems");
    const Index begin = r.starts.data()[first], end = r.starts.data()[last];
    std::vector<Index> starts(r.starts.data() + first, r.starts.data() + last + 1);
    for (Index& start : starts) start -= begin;
    return {owned(std::move(starts)),
            slice(r.support, begin, end),
            slice(r.beta, begin, end),
            slice(r.intercept, first, last),
            slice(r.primal, first, last),
            slice(r.dual, first, last),
            slice(r.violation, first, last),
            slice(r.iterations, first, last),
            slice(r.held_out, 0, 0),
            {r.status.begin() + first, r.status.begin() + last},
            r.evaluations,
            r.single_precision,
            r.whole_matrix};
}

BinaryResults run_family(Session& session, const BinaryFamily& family, double time_limit, const Watcher& progress) {
    Control control(time_limit);
    BinaryReport report;
    run_without_gil([&] { report = train_binary(session.kernel, family, control); }, control, progress);
    return results_of(report);
}

BinaryResults bound_train_binary(Session& session, const BinaryProblems& problems, const Vector<double>& cost_bounds,
                                 const BinarySettings& settings, const std::optional<BinaryStarts>& start,
                                 const std::optional<Vector<Index>>& folds, bool refine, double time_limit,
                                 const Watcher& progress) {
    BinaryFamily family{.problems = problems.all, .cost_bounds = copied(cost_bounds), .refine = refine};
    if (start) family.starts = start->all;
    if (folds) family.folds = copied(*folds);
    family.settings = settings;
    return run_family(session, family, time_limit, progress);
}

BinaryResults bound_train_paths(Session& session, const BinaryProblems& problems,
                                const Array<const double, nb::ndim<2>>& cost_bounds, const Vector<double>& costs,
                                const BinarySettings& settings, double time_limit, const Watcher& progress) {
    BinaryFamily family{.problems = problems.all, .refine = false, .settings = settings};
    for (std::size_t row = 0; row < cost_bounds.shape(0); ++row) {
        family.paths.emplace_back(as_span(costs), std::span(&cost_bounds(row, 0), cost_bounds.shape(1)));
    }
    return run_family(session, family, time_limit, progress);
}

void bound_path_scores(const Session& session, const Vector<Index>& rows, const BinaryProblems& problems,
                       const BinaryResults& results, const Array<double, nb::ndim<3>>& out, int threads) {
    const TrainingData& training = session.kernel.training();
    const auto* matrix = std::get_if<PrecomputedView>(&training.data);
    if (matrix == nullptr) throw std::invalid_argument("scores of a path are taken from a kernel matrix");
    const auto view = [](const auto& array) { return std::span(array.data(), array.size()); };
    const PathSolution solution{problems.all, view(results.starts), view(results.support), view(results.beta),
                                view(results.intercept)};
    Index coefficients = 0;
    for (const BinaryProblem& problem : problems.all) coefficients += problem.size() * solution.costs();
    const bool is_short = static_cast<double>(coefficients) * static_cast<double>(rows.size()) <= kShortWork;
    run_here_if(is_short, [&](Control& control) {
        ThreadPool pool(is_short ? 1 : threads);
        path_scores(*matrix, training.order, as_span(rows), solution, view(out), session.kernel.blas(),
                    {&pool, &control});
    });
}

Owned<Index> sizes(const BinaryProblems& problems) {
    std::vector<Index> sizes;
    for (const BinaryProblem& problem : problems.all) sizes.push_back(problem.size());
    return owned(std::move(sizes));
}

Status stop_reason_of(const BinaryResults& results) {
    const auto other = std::ranges::find_if(results.status, [](Status s) { return s != Status::converged; });
    return other == results.status.end() ? Status::converged : *other;
}

void bind_results(nb::module_& m) {
    using Results = BinaryResults;
    nb::class_<Results> results(m, "BinaryResults", "Solved binary problems side by side, an array for each quantity.");
    read_only(results,
              Field{"starts", &Results::starts, "The coefficients of problem p are [starts[p], starts[p + 1])."},
              Field{"support", &Results::support, "Examples with a coefficient, in the session's numbering."},
              Field{"beta", &Results::beta, "Their signed coefficients y_i alpha_i."},
              Field{"intercept", &Results::intercept, "Of each problem."},
              Field{"primal", &Results::primal, "Objective of each problem."},
              Field{"dual", &Results::dual, "Objective of each problem, maximised."},
              Field{"violation", &Results::violation, "Of the optimality conditions, Hsu & Lin (22)."},
              Field{"iterations", &Results::iterations, "SMO steps of each problem."},
              Field{"held_out", &Results::held_out, "With folds: decision values by machines without the example."},
              Field{"status", &Results::status, "Why each problem ended."},
              Field{"evaluations", &Results::evaluations, "Kernel values computed."},
              Field{"single_precision", &Results::single_precision, "Whether kernel values were float32."},
              Field{"whole_matrix", &Results::whole_matrix, "Whether the whole kernel matrix was there."});
    results.def("__len__", [](const Results& r) { return r.status.size(); })
        .def_prop_ro("stop_reason", &stop_reason_of, "Status.converged, or the first other one.")
        .def("part", &part, nb::arg("first"), nb::arg("last"),
             "Return the results of problems [first, last), without their held-out values and without a copy.");
}

}  // namespace

void bind_train_binary(nb::module_& m, nb::class_<Session>& session) {
    using Settings = BinarySettings;
    bind_settings<Settings>(
        m, "BinarySettings", "How far binary problems are solved, and in what portions.",
        Field{"tolerance", &Settings::tolerance, "Largest violation to stop at, epsilon of Hsu & Lin (22)."},
        Field{"gap", &Settings::gap, "Relative duality gap to stop at instead; 0: the violation counts."},
        Field{"max_iterations", &Settings::max_iterations, "SMO steps for one problem; -1: no limit."},
        Field{"working_set", &Settings::working_set, "Most variables optimised together."},
        Field{"entrants", &Settings::entrants, "Most variables that enter the working set in a round."},
        Field{"entrants_of_long_rows", &Settings::entrants_of_long_rows, "The same, where kernel rows are long."},
        Field{"in_flight", &Settings::in_flight, "Most problems solved side by side."});
    nb::class_<BinaryProblems>(m, "BinaryProblems", "Binary problems, each some signed ranges of examples.")
        .def(
            "__init__",
            [](BinaryProblems* self, const Array<const Index, nb::shape<-1, 4>>& table, bool squared) {
                new (self) BinaryProblems{problems_from({table.data(), table.size()}, squared)};
            },
            nb::arg("table"), nb::arg("squared") = false,
            "Take rows (problem, begin, end, sign), sorted by problem; ValueError names a bad one. The hinges may be "
            "squared.")
        .def("__len__", [](const BinaryProblems& problems) { return problems.all.size(); })
        .def_prop_ro("sizes", &sizes, nb::rv_policy::automatic, "Examples of each problem.");
    nb::class_<BinaryStarts>(m, "BinaryStart", "Feasible points of binary problems side by side, as in BinaryResults.")
        .def(
            "__init__",
            [](BinaryStarts* self, const Vector<Index>& starts, const Vector<Index>& support,
               const Vector<double>& beta) {
                new (self) BinaryStarts{starts_from(as_span(starts), as_span(support), as_span(beta))};
            },
            nb::arg("starts"), nb::arg("support"), nb::arg("beta"));
    bind_results(m);
    const double never = std::numeric_limits<double>::infinity();
    session.def("train_binary", &bound_train_binary, nb::arg("problems"), nb::arg("cost_bounds"), nb::arg("settings"),
                nb::kw_only(), nb::arg("start") = nb::none(), nb::arg("folds") = nb::none(), nb::arg("refine") = true,
                nb::arg("time_limit") = never, nb::arg("progress") = nb::none(),
                "Solve binary problems. With a fold for each example, also have each example's decision values by the "
                "machines without its fold.");
    session.def("train_paths", &bound_train_paths, nb::arg("problems"), nb::arg("cost_bounds"), nb::arg("costs"),
                nb::arg("settings"), nb::kw_only(), nb::arg("time_limit") = never, nb::arg("progress") = nb::none(),
                "Solve binary problems for ascending costs, which are factors of the bounds, and this for each row of "
                "bounds; the results of the first row and its first cost come first.");
    session.def("path_scores", &bound_path_scores, nb::arg("rows"), nb::arg("problems"), nb::arg("results"),
                nb::arg("out"), nb::arg("threads") = 1,
                "Write the scores that some rows of the kernel matrix get from problems solved for a path of costs to "
                "`out`, by problem, row and cost.");
}

}  // namespace polymargin::bindings
