#include "bindings.hpp"
#include "storage/svmlight.hpp"

namespace polymargin::bindings {
namespace {

void feed(SvmlightReader& reader, const nb::bytes& text) {
    const std::string_view view(static_cast<const char*>(text.data()), text.size());
    const nb::gil_scoped_release release;
    reader.feed(view);
}

/// The labels, then row starts, columns, values and number of features of a CSR matrix.
nb::tuple finish(SvmlightReader& reader) {
    SparseExamples all = [&] {
        const nb::gil_scoped_release release;
        return reader.finish();
    }();
    const auto array = [](auto& numbers) { return to_numpy(std::move(numbers)); };
    return nb::make_tuple(array(all.labels), std::visit(array, all.row_starts), std::visit(array, all.columns),
                          array(all.values), all.features);
}

}  // namespace

void bind_storage(nb::module_& m) {
    nb::class_<SvmlightReader>(m, "SvmlightReader", "A reader of the text format of svmlight and LIBSVM.")
        .def(nb::init<bool>(), nb::arg("zero_based"))
        .def("feed", &feed, nb::arg("text"), "Read a piece of the text; ValueError names line and column.")
        .def("finish", &finish, "Return labels, row starts, columns, values and the number of features.");
}

}  // namespace polymargin::bindings
