#include "machine/scorer.hpp"

#include <nanobind/stl/optional.h>

#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "bindings.hpp"
#include "machine/elimination.hpp"

namespace polymargin::bindings {
namespace {

/// A scorer, with the arrays that it reads kept alive.
struct BoundScorer {
    Data vectors;
    Array<const double, nb::ndim<2>> coefficients;
    Scorer scorer;
};

/// How far off scores may be, with the array of masses kept alive.
struct BoundErrors {
    double unit;
    Vector<double> masses;
    double largest;
};

std::vector<ScoreBlock> blocks_of(const Array<const Index, nb::shape<-1, 2>>& ranges, const Vector<Index>& starts,
                                  const Vector<Index>& columns) {
    if (starts.size() != ranges.shape(0) + 1) throw std::invalid_argument("column_starts must have a place per block");
    std::vector<ScoreBlock> blocks;
    for (std::size_t b = 0; b < ranges.shape(0); ++b) {
        const Index begin = starts(b), end = starts(b + 1);
        if (begin < 0 || begin > end || end > static_cast<Index>(columns.size())) {
            throw std::invalid_argument("column_starts must name places in columns, in ascending order");
        }
        blocks.push_back({{ranges(b, 0), ranges(b, 1)}, {columns.data() + begin, columns.data() + end}});
    }
    return blocks;
}

void make_scorer(BoundScorer* self, const Data& vectors, const KernelSpec& kernel,
                 const Array<const double, nb::ndim<2>>& coefficients,
                 const Array<const Index, nb::shape<-1, 2>>& ranges, const Vector<Index>& column_starts,
                 const Vector<Index>& columns, const Vector<double>& intercepts) {
    ScoringModel model{.vectors = vectors.view,
                       .kernel = kernel,
                       .coefficients = {coefficients.data(), coefficients.size()},
                       .height = static_cast<Index>(coefficients.shape(0)),
                       .blocks = blocks_of(ranges, column_starts, columns),
                       .intercepts = {intercepts.data(), intercepts.data() + intercepts.size()}};
    new (self) BoundScorer{vectors, coefficients, Scorer(std::move(model))};
}

std::vector<Index> rows_in(const Data& data, const std::optional<Vector<Index>>& rows) {
    if (rows) return {rows->data(), rows->data() + rows->size()};
    std::vector<Index> all(rows_of(data.view));
    std::iota(all.begin(), all.end(), Index{0});
    return all;
}

void require_rows(std::size_t found, std::size_t rows) {
    if (found != rows) throw std::invalid_argument("what is written to must have a row for each row asked for");
}

void scores(const BoundScorer& self, const Data& data, const std::optional<Vector<Index>>& rows,
            const Array<double, nb::ndim<2>>& out, const Array<double, nb::ndim<1>>& sizes, double accuracy,
            int threads, bool same_sums) {
    const auto which = rows_in(data, rows);
    require_rows(out.shape(0), which.size());
    require_rows(sizes.size(), which.size());
    if (static_cast<Index>(out.shape(1)) != self.scorer.model().scores()) {
        throw std::invalid_argument("out must have a column for each score");
    }
    const Blas& blas = scipy_blas();
    run_here_if(self.scorer.is_short(std::ssize(which)), [&](Control& control) {
        self.scorer.scores(data.view, which, {accuracy, threads, same_sums}, {out.data(), out.size()},
                           {sizes.data(), sizes.size()}, blas, control);
    });
}

void eliminated(const BoundScorer& self, const Data& data, const std::optional<Vector<Index>>& rows, Elimination rule,
                const BoundErrors& errors, const Array<Index, nb::ndim<1>>& classes,
                const Array<std::uint8_t, nb::ndim<1>>& uncertain, double accuracy, int threads) {
    const auto which = rows_in(data, rows);
    require_rows(classes.size(), which.size());
    require_rows(uncertain.size(), which.size());
    const ScoreErrors bound{errors.unit, as_span(errors.masses), errors.largest};
    const Blas& blas = scipy_blas();
    run_here_if(self.scorer.is_short(std::ssize(which)), [&](Control& control) {
        eliminate(self.scorer, data.view, which, rule, bound, {accuracy, threads}, {classes.data(), classes.size()},
                  {uncertain.data(), uncertain.size()}, blas, control);
    });
}

}  // namespace

void bind_scorer(nb::module_& m) {
    nb::enum_<Elimination>(m, "Elimination", "How pairs of classes are asked until one class is left.")
        .value("dag", Elimination::dag)
        .value("adag", Elimination::adag);
    nb::class_<BoundErrors>(m, "ScoreErrors",
                            "How far off scores may be: min(unit * (size * masses + |intercepts|), largest).")
        .def(nb::init<double, Vector<double>, double>(), nb::arg("unit"), nb::arg("masses"), nb::arg("largest"));
    nb::class_<BoundScorer>(m, "Scorer", "A model that is ready to score: what every prediction needs is kept.")
        .def("__init__", &make_scorer, nb::arg("vectors"), nb::arg("kernel"), nb::arg("coefficients"),
             nb::arg("ranges"), nb::arg("column_starts"), nb::arg("columns"), nb::arg("intercepts"))
        .def_static("are_few", &Scorer::are_few, nb::arg("rows"),
                    "Whether so few rows are taken one by one: without BLAS, unless sums must be the same.")
        .def("scores", &scores, nb::arg("data"), nb::arg("rows").none(), nb::arg("out"), nb::arg("sizes"),
             nb::arg("accuracy"), nb::arg("threads"), nb::arg("same_sums"),
             "Write the scores of some rows, or all, and the sizes of rounding in their kernel values.")
        .def("eliminate", &eliminated, nb::arg("data"), nb::arg("rows").none(), nb::arg("rule"), nb::arg("errors"),
             nb::arg("classes"), nb::arg("uncertain"), nb::arg("accuracy"), nb::arg("threads"),
             "Write the classes of some rows, or all, and whether rounding could have led elsewhere.");
}

}  // namespace polymargin::bindings
