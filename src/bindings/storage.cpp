#include "records.hpp"
#include "storage/svmlight.hpp"

namespace polymargin::bindings {
namespace {

using Integers = std::variant<Owned<std::int32_t>, Owned<std::int64_t>>;

struct Examples {
    Owned<double> labels;
    Integers row_starts, columns;
    Owned<double> values;
    Index features;
};

void feed(SvmlightReader& reader, const nb::bytes& text) {
    const std::string_view view(static_cast<const char*>(text.data()), text.size());
    const nb::gil_scoped_release release;
    reader.feed(view);
}

Examples finish(SvmlightReader& reader) {
    SparseExamples all = [&] {
        const nb::gil_scoped_release release;
        return reader.finish();
    }();
    const auto take = [](auto& numbers) -> Integers { return owned(std::move(numbers)); };
    return {owned(std::move(all.labels)), std::visit(take, all.row_starts), std::visit(take, all.columns),
            owned(std::move(all.values)), all.features};
}

}  // namespace

void bind_storage(nb::module_& m) {
    nb::class_<Examples> examples(m, "SparseExamples", "Labels, and examples as the arrays of a CSR matrix.");
    read_only(
        examples, Field{"labels", &Examples::labels, "Of each row."},
        Field{"row_starts", &Examples::row_starts, "The entries of row i are [row_starts[i], row_starts[i + 1])."},
        Field{"columns", &Examples::columns, "Of each entry."}, Field{"values", &Examples::values, "Of each entry."},
        Field{"features", &Examples::features, "Columns of the matrix."});
    nb::class_<SvmlightReader>(m, "SvmlightReader", "A reader of the text format of svmlight and LIBSVM.")
        .def(nb::init<bool>(), nb::arg("zero_based"))
        .def("feed", &feed, nb::arg("text"), "Read a piece of the text; ValueError names line and column.")
        .def("finish", &finish, "Return what was read.");
}

}  // namespace polymargin::bindings
