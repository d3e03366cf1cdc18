"""The parts of the docstrings that all machines share."""

from __future__ import annotations

from inspect import cleandoc
from textwrap import dedent, indent
from typing import TypeVar

from polymargin.kernels import kernel_documentation

Machine = TypeVar("Machine", bound=type)

_SHARED = {
    "C": """\
    C : float, default=1.0
        Cost of a margin violation; ``inf`` asks for a hard margin. Example t has
        ``C_t = C * class_weight * sample_weight``.
""",
    "loss": """\
    loss : {"hinge", "squared_hinge"}, default="hinge"
        ``"squared_hinge"`` puts the square of a hinge in its place, as scikit-learn's ``LinearSVC`` does by default:
        :math:`C_t \\xi_t^2`, without a factor 1/2. All examples short of their margins are then free support vectors.
""",
    "calibration": """\
    calibration : {"sigmoid", "isotonic", "temperature"} or None, default=None
        How probabilities are fitted to scores of held-out examples: ``fit`` solves again without each of five folds.
        ``"sigmoid"``: Platt's sigmoid of each score. ``"isotonic"``: a function of each score that never falls; wants
        many examples. Both are scaled to sum to one. ``"temperature"``: the softmax of all scores over one temperature,
        which leaves the order of the classes alone. ``predict`` is the class with the largest probability. None: no
        ``predict_proba``.
""",
    "parameters": indent(kernel_documentation(weighted=True), "    ")
    + """\
    tol : float, default=1e-3
        When to stop: the largest value of what ``stop`` names. On up to 1,024 examples with a kernel matrix
        machines are solved to rounding where ``tol`` is at most 1e-5, where sample weights differ within a class,
        binary ones also where that is a small share of the fit.
    stop : {"auto", "violation", "gap"}, default="auto"
        What ``tol`` is compared with, however many examples there are. ``"violation"``: by how much the optimality
        conditions of the worst example are violated, in units of the decision value; for ``"cutting-plane"`` and
        ``LinearProgramSVC``, which see sums alone, the mean of all examples: the gap of the objectives divided by the
        sum of all C_t. ``"gap"``: the relative duality gap. ``"auto"`` is the gap for ``LinearProgramSVC`` and, but for
        pairs of classes, for the linear kernel, and the violation otherwise. Unless the gap
        itself is set to more, one above 0.01 gives a warning.
    class_weight : dict, "balanced" or None, default=None
        Factors on C for each class; ``"balanced"`` makes them inversely proportional to class frequencies.
    max_iter : int, default=-1
        Most steps of the solver for one problem, -1 for no limit.
    time_limit : float or None, default=None
        Most seconds for the fit; the best answer so far is kept, with a warning.
    cache_size : "auto" or float, default="auto"
        Megabytes for kernel values. ``"auto"`` takes at most half of the memory that is free.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all cores. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Order in which ``"sequential-dual"`` visits the examples, folds for probabilities, first pair and
        probes of ``UncertaintySVC``; None is always the same choice. Unused elsewhere.
    verbose : int, default=0
        1 shows a progress bar.
    warm_start : bool, default=False
        Start from the last solution, when the classes are the same: useful for a series of C.
""",
    "kernel": kernel_documentation(),
    "threads": """\
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all cores. The result does not depend on it.
""",
    "basis": """\
    indices_ : ndarray of shape (n_points,)
        Rows of the examples whose span has the basis.
    points_ : {ndarray, CSR} of shape (n_points, n_features)
        These examples; empty for a precomputed kernel.
    coefficients_ : ndarray of shape (n_points, n_features_out)
        A: feature i of x is ``sum_k A[k, i] k(points_[k], x)``.
    n_features_in_ : int
        Number of features seen by ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names that are strings.
""",
    "Zien": """\
    A. Zien, F. De Bona, C. S. Ong, "Training and approximation of a primal multiclass support vector machine", Applied
    Stochastic Models and Data Analysis (ASMDA) 2007.
""",
    "together parameters": """\
    solver : {"auto", "decomposition", "sequential-dual", "exponentiated-gradient", "cutting-plane"}, default="auto"
        ``"decomposition"`` solves the dual on kernel values. For the linear kernel and finite C there are also
        ``"sequential-dual"`` (Keerthi et al. 2008), which goes from example to example and never computes a kernel
        value, and its competitors: ``"cutting-plane"`` and, for Crammer-Singer, ``"exponentiated-gradient"``.
        ``"auto"`` takes the sequential dual method for the linear kernel and more than 4,096 examples, or where the
        memory has no room for a matrix of kernel values; what crawls goes over to another solver, `solver_used_`.
""",
    "costs": """\
    costs : array-like of shape (k, k) or None, default=None
        What it costs to call an example of a class (row) another (column), in the order of ``classes_``; the diagonal
        is 0. The margin against a class is multiplied by it. None: 1 for every mistake. ``polymargin.costs`` makes such
        matrices from taxonomies and from classes in an order.
""",
    "absolute parameters": """\
    bias : {"regularized", "free"} or None, default="regularized"
        ``"regularized"``: :math:`\\tfrac12 \\sum_m b_m^2` joins the objective. ``"free"``: b costs nothing; solved by
        proximal steps on b. None: no b.
""",
    "support": """\
    classes_ : ndarray of shape (k,)
        The classes.
    n_features_in_ : int
        Number of features seen by ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had names that are strings.
    support_ : ndarray of shape (n_SV,)
        Rows of the unique support vectors, grouped by class.
    support_vectors_ : {ndarray, CSR} of shape (n_SV, n_features)
        The support vectors; empty for a precomputed kernel.
    n_support_ : ndarray of shape (k,)
        Number of support vectors of each class.
""",
    "together coefficients": """\
    dual_coef_ : ndarray of shape (k, n_SV)
        Coefficients of the support vectors in each class score; a column sums to zero. A CSC matrix when the linear
        solvers find more than 67 million.
    intercept_ : ndarray of shape (k,)
        Intercepts of the class scores.
    coef_ : ndarray of shape (k, n_features)
        Weights of the features, for the linear kernel. Those of the coefficients, but after the Newton steps of
        ``"sequential-dual"`` only as near to them as the gap says.
    n_iter_ : int
        Exact steps taken, each on all coefficients of one example; ``"sequential-dual"``: visits to examples, whether a
        step was needed or not; ``"cutting-plane"``: planes;
        ``solver_used_="interior-point"``: its steps.
    primal_objective_ : float
        Primal objective.
    dual_objective_ : float
        Dual objective: maximised, so never larger than the primal.
""",
    "outcome": """\
    duality_gap_ : float
        Their relative difference: the certificate.
    converged_ : bool
        Whether ``tol`` was met, by the rule that ``stop`` names.
    stop_reason_ : str
        "converged", "max_iter", "time_limit", "stopped" (by a callback) or "precision" (rounding hides the rest).
    solver_used_ : str
        The solver that was used; ``"interior-point"`` where others took long on a small linear machine, or where that
        method took over from the decomposition of a joint machine.
    fit_time_ : float
        Seconds that ``fit`` took.
    n_kernel_evaluations_ : int
        Kernel values computed.
""",
    "Keerthi": """\
    S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin, "A sequential dual method for large scale
    multi-class linear SVMs", KDD 2008, doi:10.1145/1401890.1401942.
""",
    "Dogan": """\
    U. Dogan, T. Glasmachers, C. Igel, "A unified view on multi-class support vector classification", Journal of Machine
    Learning Research 17(45), 2016.
""",
    "Lee": """\
    Y. Lee, Y. Lin, G. Wahba, "Multicategory support vector machines: theory and application to the classification of
    microarray data and satellite radiance data", Journal of the American Statistical Association 99, 2004,
    doi:10.1198/016214504000000098.
""",
    "GenSVM": """\
    G. J. J. van den Burg, P. J. F. Groenen, "GenSVM: a generalized multiclass support vector machine", Journal of
    Machine Learning Research 17(225), 2016.
""",
    "Huber": """\
    P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35(1), 1964,
    doi:10.1214/aoms/1177703732.
""",
    "Hsu and Lin": """\
    C.-W. Hsu, C.-J. Lin, "A comparison of methods for multiclass support vector machines", IEEE Transactions on
    Neural Networks 13(2), 2002, doi:10.1109/72.991427.
""",
}


def with_shared_documentation(machine: Machine) -> Machine:
    """Put the shared parts where the docstring names them: a line ``<name>``."""
    if machine.__doc__ is not None:  # Python without docstrings: nothing to do
        machine.__doc__ = cleandoc(machine.__doc__) + "\n"  # as the compiler leaves it from Python 3.13 on
        for name, text in _SHARED.items():
            machine.__doc__ = machine.__doc__.replace(f"<{name}>\n", dedent(text))
    return machine
