"""Documentation that can be relied on: numpydoc's rules, the interface's attributes, examples that run."""

import doctest
import importlib
import inspect
import pkgutil

import pytest
from numpydoc.docscrape import ClassDoc
from numpydoc.validate import validate

import polymargin
from polymargin.documentation import with_shared_documentation
from polymargin.estimators.declaration import Fitted, FittedPart

CHECKS = {
    "GL03",  # no double blank lines
    "GL05",  # no tabs
    "GL06",  # no unknown sections
    "GL07",  # sections in order
    "GL08",  # there is a docstring
    "GL10",  # directives with two colons
    "SS01",  # there is a summary
    "SS02",  # it starts with a capital letter
    "SS03",  # it ends with a period
    "SS06",  # it fits one line
    "PR01",  # all parameters are documented
    "PR02",  # and no others
    "PR03",  # in their order
    "PR04",  # with a type
    "PR05",  # which has no period
    "PR07",  # and a description
    "PR10",  # a space before the colon
    "RT01",  # what is returned is said
    "RT03",  # and described
    "YD01",  # the same for yields
}
ATTRIBUTES = {
    "classes_",
    "n_features_in_",
    "feature_names_in_",
    "support_",
    "support_vectors_",
    "n_support_",
    "dual_coef_",
    "intercept_",
    "coef_",
    "n_iter_",
    "primal_objective_",
    "dual_objective_",
    "duality_gap_",
    "converged_",
    "stop_reason_",
    "solver_used_",
    "fit_time_",
    "n_kernel_evaluations_",
}
MODULES = ["polymargin"] + [
    module.name
    for module in pkgutil.walk_packages(polymargin.__path__, "polymargin.")
    if not module.name.split(".")[-1].startswith("_core")
]
PUBLIC = [name for name in polymargin.__all__ if not name.startswith("_")]
ELSEWHERE = [  # public, of other modules
    "cli.main",
    "costs.CostScorer",
    "costs.cheapest_classes",
    "costs.checked_costs",
    "costs.make_cost_scorer",
    "costs.mean_cost",
    "costs.ordinal_costs",
    "costs.taxonomy_costs",
    "plots.decision_regions",
    "storage.export_libsvm",
    "storage.export_onnx",
    "storage.import_libsvm",
    "storage.read_data",
    "storage.register_onnx_converters",
]
OPTIONAL = {  # what examples need beyond the package itself
    "polymargin.storage.onnx_converters": ("onnxruntime", "skl2onnx"),
    "polymargin.storage.onnx_file": ("onnx", "onnxruntime"),
}
CLASSES = [name for name in PUBLIC if inspect.isclass(getattr(polymargin, name))]


def documented_objects():
    """Return the dotted names of public classes and functions and of the methods that are our own."""
    found = [f"polymargin.{name}" for name in ELSEWHERE]
    for name in PUBLIC:
        item = getattr(polymargin, name)
        if not (inspect.isclass(item) or inspect.isfunction(item)):
            continue
        found.append(f"polymargin.{name}")
        if not inspect.isclass(item):
            continue
        for member, value in inspect.getmembers(item):
            if isinstance(value, Fitted | FittedPart | type):
                continue  # fitted attributes, which the docstring of the class has, and what they are of
            function = value.fget if isinstance(value, property) else value
            ours = getattr(function, "__module__", None) or ""
            if not member.startswith("_") and ours.startswith("polymargin"):
                found.append(f"polymargin.{name}.{member}")
    return found


def test_there_is_something_to_check():
    assert {"OneVsOneSVC", "OneVsRestSVC"} <= set(CLASSES)
    names = documented_objects()
    for method in ("fit", "predict", "decision_function", "pairwise_decision_function"):
        assert f"polymargin.OneVsOneSVC.{method}" in names


@pytest.mark.parametrize("name", documented_objects())
def test_numpydoc(name):
    errors = [f"{code}: {text}" for code, text in validate(name)["errors"] if code in CHECKS]
    assert not errors, "\n".join(errors)


@pytest.mark.parametrize("name", [name for name in CLASSES if name.endswith("SVC")])
def test_machines_document_formula_attributes_references_and_an_example(name):
    machine = getattr(polymargin, name)
    doc = ClassDoc(machine)
    missing = ATTRIBUTES - {attribute.name for attribute in doc["Attributes"]}
    assert not missing
    assert "math::" in inspect.getdoc(machine)
    assert "doi" in "\n".join(doc["References"]).lower()
    assert ">>> " in "\n".join(doc["Examples"])
    described = [attribute.name for attribute in doc["Attributes"] if "".join(attribute.desc).strip()]
    assert len(described) == len(doc["Attributes"])


@pytest.mark.parametrize("name", MODULES)
def test_modules_have_a_docstring(name):
    assert (importlib.import_module(name).__doc__ or "").strip()


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    for package in OPTIONAL.get(name, ()):
        pytest.importorskip(package, reason=f"{package} is not installed")
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.failed == 0


def test_public_names_are_listed_and_exist():
    assert len(set(polymargin.__all__)) == len(polymargin.__all__)
    for name in polymargin.__all__:
        assert hasattr(polymargin, name), name


@pytest.mark.parametrize("indentation", ["    ", ""], ids=["as written", "as Python 3.13 leaves it"])
def test_shared_parts_are_filled_in_whatever_the_indentation(indentation):
    lines = ["A machine.", "", "Parameters", "----------", "<C>", "<parameters>"]
    machine = type("Machine", (), {"__doc__": "\n".join([lines[0], *(indentation + line for line in lines[1:]), ""])})
    names = [parameter.name for parameter in ClassDoc(with_shared_documentation(machine))["Parameters"]]
    assert names[:2] == ["C", "kernel"]
    assert "<" not in machine.__doc__.replace("<=", "")
