#include <nanobind/stl/string.h>

#include <chrono>
#include <string>

#include "bindings.hpp"
#include "support/instruction_set.hpp"

#if defined(__clang__)
#define POLYMARGIN_COMPILER "Clang " __clang_version__
#else
#define POLYMARGIN_COMPILER "GCC " __VERSION__
#endif

namespace polymargin::bindings {
namespace {

template <class Function>
Function routine(const char* module, const char* name) {
    const nb::object table = nb::module_::import_(module).attr("__pyx_capi__");
    const nb::object capsule = table[name];
    void* pointer = PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()));
    if (pointer == nullptr) throw nb::python_error();
    return reinterpret_cast<Function>(pointer);
}

}  // namespace

const Blas& scipy_blas() {
    static const Blas blas = [] {
        Blas b;
        b.sgemm = routine<Blas::Gemm<float>>("scipy.linalg.cython_blas", "sgemm");
        b.dgemm = routine<Blas::Gemm<double>>("scipy.linalg.cython_blas", "dgemm");
        b.dgelsy = routine<Blas::Gelsy>("scipy.linalg.cython_lapack", "dgelsy");
        b.dposv = routine<Blas::Posv>("scipy.linalg.cython_lapack", "dposv");
        b.dpotrf = routine<Blas::Potrf>("scipy.linalg.cython_lapack", "dpotrf");
        b.dpotrs = routine<Blas::Posv>("scipy.linalg.cython_lapack", "dpotrs");
        b.dpotri = routine<Blas::Potrf>("scipy.linalg.cython_lapack", "dpotri");
        return b;
    }();
    return blas;
}

void run_without_gil(const std::function<void()>& work, Control& control, const nb::object& progress) {
    using namespace std::chrono;
    auto last = steady_clock::now();
    bool interrupted = false;
    const auto poll = [&] {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() == 0) {
            if (progress.is_none() || steady_clock::now() - last < milliseconds(100)) return true;
            last = steady_clock::now();
            const Progress now = control.progress();
            PyObject* result = PyObject_CallFunction(progress.ptr(), "LLLd", static_cast<long long>(now.done),
                                                     static_cast<long long>(now.total),
                                                     static_cast<long long>(now.iterations), now.open());
            if (result != nullptr) {
                const bool go_on = result != Py_False;
                Py_DECREF(result);
                return go_on;
            }
        }
        control.abandon();
        interrupted = true;  // the error stays set on this thread until the work has ended
        return false;
    };
    {
        const nb::gil_scoped_release release;
        try {
            run_watched(work, control, poll);
        } catch (const Abandoned&) {  // the error is the reason
        }
    }
    if (interrupted) throw nb::python_error();
}

void bind_runtime(nb::module_& m) {
    m.def("instruction_set", [] { return std::string(instruction_set()); }, "Return what the vectorised loops run on.");
    m.def("compiler", [] { return std::string(POLYMARGIN_COMPILER); }, "Return what the core was compiled with.");
}

}  // namespace polymargin::bindings
