"""The compiled core of polymargin: kernels, problems, solvers."""

from collections.abc import Callable
import enum
from typing import Annotated, Any, overload

import numpy
import numpy.typing
from numpy.typing import NDArray


class Data:
    """
    Examples, or their kernel values, as the core reads them: without a copy.
    """

    @staticmethod
    def dense(values: numpy.typing.NDArray[numpy.floating[Any]]) -> Data: ...

    @staticmethod
    def csr(values: numpy.typing.NDArray[numpy.floating[Any]], columns: numpy.typing.NDArray[numpy.integer[Any]], row_starts: numpy.typing.NDArray[numpy.integer[Any]], rows: int, features: int) -> Data: ...

    @staticmethod
    def precomputed(values: numpy.typing.NDArray[numpy.floating[Any]]) -> Data: ...

def check_csr(columns: numpy.typing.NDArray[numpy.integer[Any]], row_starts: numpy.typing.NDArray[numpy.integer[Any]], stored: int, rows: int, features: int) -> None:
    """
    Raise ValueError, naming the place, unless the structure of a CSR matrix is sound.
    """

class KernelInput(enum.Enum):
    """What the values of a kernel are a function of."""

    products = 0

    squared_distances = 1

    feature_sums = 2

    matrix = 3

class KernelType(enum.Enum):
    linear = 0

    poly = 1

    rbf = 2

    sigmoid = 3

    precomputed = 4

    laplacian = 5

class Kernel:
    """A kernel function and its parameters."""

    def __init__(self, type: KernelType, gamma: float, coef0: float, degree: int) -> None: ...

    @property
    def reads(self) -> KernelInput: ...

    @property
    def is_translation_invariant(self) -> bool: ...

    def diagonal(self, norm: float) -> float:
        """Return k(x, x) of a point with a squared length."""

@overload
def apply_kernel(kernel: Kernel, inputs: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None: ...

@overload
def apply_kernel(kernel: Kernel, inputs: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """
    Write the kernel values of what the kernel reads (its `reads`) to `out`.
    """

@overload
def pair_sums(kernel: Kernel, data: Data, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None: ...

@overload
def pair_sums(kernel: Kernel, data: Data, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """
    Write the sums over features that the kernel reads, of all pairs of examples, to `out`.
    """

class Status(enum.Enum):
    """Why a solver stopped."""

    converged = 0
    """It found what was asked for."""

    max_iter = 1

    time_limit = 2

    stopped = 3
    """Whoever waits asked for it."""

    precision = 4
    """Rounding hides what is left."""

    unbounded = 5
    """The hard margin does not exist."""

class Bias(enum.Enum):
    """What the scores have besides the weights."""

    none = 0

    regularized = 1
    """Part of the weights: the kernel is K + 1."""

    free = 2

class WestonWatkins:
    """sum_{m != y} max(0, margin - (s_y - s_m))"""

    def __init__(self, margin: float = 2.0) -> None: ...

class CrammerSinger:
    """max_m (s_m + [m != y]) - s_y"""

    def __init__(self) -> None: ...

class OneVsRest:
    """sum_m max(0, 1 - (+-1) s_m), plus for m = y"""

    def __init__(self) -> None: ...

class AbsoluteSum:
    """
    own max(0, own_target - s_y) + others sum_{m != y} max(0, 1 + s_m), scores summing to zero
    """

    def __init__(self, own: float = 0.0, others: float = 1.0, own_target: float = 1.0) -> None: ...

class AbsoluteMaximum:
    """
    max_m max(0, 1 - (+-1) s_m), plus for m = y, which counts if own; scores summing to zero
    """

    def __init__(self, own: bool = False) -> None: ...

class SquaredWestonWatkins:
    """sum_{m != y} max(0, margin - (s_y - s_m))^2"""

    def __init__(self, margin: float = 2.0) -> None: ...

class SquaredCrammerSinger:
    """(max_m (s_m + [m != y]) - s_y)^2"""

    def __init__(self) -> None: ...

class SquaredOneVsRest:
    """sum_m max(0, 1 - (+-1) s_m)^2, plus for m = y"""

    def __init__(self) -> None: ...

class WestonWatkinsCosts:
    """
    The loss with a margin for each class of an example (row) and each other one (column)
    """

    def __init__(self, loss: WestonWatkins, targets: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

class CrammerSingerCosts:
    """
    The loss with a margin for each class of an example (row) and each other one (column)
    """

    def __init__(self, loss: CrammerSinger, targets: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

class AbsoluteSumCosts:
    """
    The loss with a margin for each class of an example (row) and each other one (column)
    """

    def __init__(self, loss: AbsoluteSum, targets: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

class AbsoluteMaximumCosts:
    """
    The loss with a margin for each class of an example (row) and each other one (column)
    """

    def __init__(self, loss: AbsoluteMaximum, targets: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

def exact_step(loss: WestonWatkins | CrammerSinger | OneVsRest | AbsoluteSum | AbsoluteMaximum | SquaredWestonWatkins | SquaredCrammerSinger | SquaredOneVsRest | WestonWatkinsCosts | CrammerSingerCosts | AbsoluteSumCosts | AbsoluteMaximumCosts, gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], curvature: float, label: int, cost_bound: float, row: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))] | None:
    """
    Return the row of one example that is best while all others stay; None if there is no best one.
    """

class Exactness:
    """What kernel values have to be exact enough for."""

    def __init__(self, *, largest_cost_bound: float = 0.0, tolerance: float = 0.001, rough: bool = False) -> None: ...

    @property
    def largest_cost_bound(self) -> float:
        """No C_i will be larger."""

    @largest_cost_bound.setter
    def largest_cost_bound(self, arg: float, /) -> None: ...

    @property
    def tolerance(self) -> float:
        """No solver goes on below this violation."""

    @tolerance.setter
    def tolerance(self, arg: float, /) -> None: ...

    @property
    def rough(self) -> bool:
        """Answers will be compared and thrown away: rounding may take more."""

    @rough.setter
    def rough(self, arg: bool, /) -> None: ...

class Resources:
    """What a session may take."""

    def __init__(self, *, budget_bytes: int = 0, threads: int = 1, whole: bool = False) -> None: ...

    @property
    def budget_bytes(self) -> int:
        """Memory for kernel values and the ordered copy of the data."""

    @budget_bytes.setter
    def budget_bytes(self, arg: int, /) -> None: ...

    @property
    def threads(self) -> int:
        """Threads of every call."""

    @threads.setter
    def threads(self, arg: int, /) -> None: ...

    @property
    def whole(self) -> bool:
        """Have the whole matrix first, if it fits: many problems will follow."""

    @whole.setter
    def whole(self, arg: bool, /) -> None: ...

def single_precision_suffices(largest_value: float, exactness: Exactness) -> bool:
    """Return whether stored kernel values may be in single precision."""

class KernelSession:
    """
    Trains machines on one data set and kernel, and keeps kernel values between calls.
    """

    def __init__(self, data: Data, kernel: Kernel, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], exactness: Exactness, resources: Resources) -> None: ...

    def train_binary(self, problems: BinaryProblems, cost_bounds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], settings: BinarySettings, *, start: BinaryStart | None = None, folds: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, refine: bool = True, time_limit: float = float('inf'), progress: Callable[[int, int, int, float], bool] | None = None) -> BinaryResults:
        """
        Solve binary problems. With a fold for each example, also have each example's decision values by the machines without its fold.
        """

    def train_paths(self, problems: BinaryProblems, cost_bounds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], settings: BinarySettings, *, time_limit: float = float('inf'), progress: Callable[[int, int, int, float], bool] | None = None) -> BinaryResults:
        """
        Solve binary problems for ascending costs, which are factors of the bounds, and this for each row of bounds; the results of the first row and its first cost come first.
        """

    def path_scores(self, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], problems: BinaryProblems, results: BinaryResults, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu')], threads: int = 1) -> None:
        """
        Write the scores that some rows of the kernel matrix get from problems solved for a path of costs to `out`, by problem, row and cost.
        """

    def train_joint(self, problem: JointProblem, settings: JointSettings, *, start: RowStart | None = None, refine: bool = True, time_limit: float = float('inf'), progress: Callable[[int, int, int, float], bool] | None = None) -> JointResult:
        """Train a machine for all classes at once."""

class BinarySettings:
    """How far binary problems are solved, and in what portions."""

    def __init__(self, *, tolerance: float = 0.001, gap: float = 0.0, max_iterations: int = -1, working_set: int = 512, entrants: int = 64, entrants_of_long_rows: int = 64, in_flight: int = 4) -> None: ...

    @property
    def tolerance(self) -> float:
        """Largest violation to stop at, epsilon of Hsu & Lin (22)."""

    @tolerance.setter
    def tolerance(self, arg: float, /) -> None: ...

    @property
    def gap(self) -> float:
        """Relative duality gap to stop at instead; 0: the violation counts."""

    @gap.setter
    def gap(self, arg: float, /) -> None: ...

    @property
    def max_iterations(self) -> int:
        """SMO steps for one problem; -1: no limit."""

    @max_iterations.setter
    def max_iterations(self, arg: int, /) -> None: ...

    @property
    def working_set(self) -> int:
        """Most variables optimised together."""

    @working_set.setter
    def working_set(self, arg: int, /) -> None: ...

    @property
    def entrants(self) -> int:
        """Most variables that enter the working set in a round."""

    @entrants.setter
    def entrants(self, arg: int, /) -> None: ...

    @property
    def entrants_of_long_rows(self) -> int:
        """The same, where kernel rows are long."""

    @entrants_of_long_rows.setter
    def entrants_of_long_rows(self, arg: int, /) -> None: ...

    @property
    def in_flight(self) -> int:
        """Most problems solved side by side."""

    @in_flight.setter
    def in_flight(self, arg: int, /) -> None: ...

class BinaryProblems:
    """Binary problems, each some signed ranges of examples."""

    def __init__(self, table: Annotated[NDArray[numpy.int64], dict(shape=(None, 4), order='C', device='cpu', writable=False)], squared: bool = False) -> None:
        """
        Take rows (problem, begin, end, sign), sorted by problem; ValueError names a bad one. The hinges may be squared.
        """

    def __len__(self) -> int: ...

    @property
    def sizes(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Examples of each problem."""

class BinaryStart:
    """Feasible points of binary problems side by side, as in BinaryResults."""

    def __init__(self, starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], support: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class BinaryResults:
    """Solved binary problems side by side, an array for each quantity."""

    @property
    def starts(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """The coefficients of problem p are [starts[p], starts[p + 1])."""

    @property
    def support(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Examples with a coefficient, in the session's numbering."""

    @property
    def beta(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Their signed coefficients y_i alpha_i."""

    @property
    def intercept(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Of each problem."""

    @property
    def primal(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Objective of each problem."""

    @property
    def dual(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Objective of each problem, maximised."""

    @property
    def violation(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Of the optimality conditions, Hsu & Lin (22)."""

    @property
    def iterations(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """SMO steps of each problem."""

    @property
    def held_out(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """With folds: decision values by machines without the example."""

    @property
    def status(self) -> list[Status]:
        """Why each problem ended."""

    @property
    def evaluations(self) -> int:
        """Kernel values computed."""

    @property
    def single_precision(self) -> bool:
        """Whether kernel values were float32."""

    @property
    def whole_matrix(self) -> bool:
        """Whether the whole kernel matrix was there."""

    def __len__(self) -> int: ...

    @property
    def stop_reason(self) -> Status:
        """Status.converged, or the first other one."""

    def part(self, first: int, last: int) -> BinaryResults:
        """
        Return the results of problems [first, last), without their held-out values and without a copy.
        """

class JointSettings:
    """How far a joint machine is trained, and in what portions."""

    def __init__(self, *, tolerance: float = 0.001, gap: float = 0.0, gap_counts: bool = False, max_iterations: int = -1, max_work: float = float('inf'), working_set: int = 512, entrants: int = 64, shrink_from: int = 2048) -> None: ...

    @property
    def tolerance(self) -> float:
        """Largest violation to stop at, epsilon of Hsu & Lin (21)."""

    @tolerance.setter
    def tolerance(self, arg: float, /) -> None: ...

    @property
    def gap(self) -> float:
        """Relative duality gap to stop at as well; 0: never."""

    @gap.setter
    def gap(self, arg: float, /) -> None: ...

    @property
    def gap_counts(self) -> bool:
        """Go on beyond the tolerance until the gap is reached."""

    @gap_counts.setter
    def gap_counts(self, arg: bool, /) -> None: ...

    @property
    def max_iterations(self) -> int:
        """Exact steps; -1: no limit."""

    @max_iterations.setter
    def max_iterations(self, arg: int, /) -> None: ...

    @property
    def max_work(self) -> float:
        """Operations, about; inf: no limit."""

    @max_work.setter
    def max_work(self, arg: float, /) -> None: ...

    @property
    def working_set(self) -> int:
        """Most examples optimised together."""

    @working_set.setter
    def working_set(self, arg: int, /) -> None: ...

    @property
    def entrants(self) -> int:
        """Most examples that enter the working set in a round."""

    @entrants.setter
    def entrants(self, arg: int, /) -> None: ...

    @property
    def shrink_from(self) -> int:
        """Smaller problems are not shrunk."""

    @shrink_from.setter
    def shrink_from(self, arg: int, /) -> None: ...

class JointProblem:
    """A machine for all classes at once, on kernel values."""

    def __init__(self, loss: WestonWatkins | CrammerSinger | OneVsRest | AbsoluteSum | AbsoluteMaximum | SquaredWestonWatkins | SquaredCrammerSinger | SquaredOneVsRest | WestonWatkinsCosts | CrammerSingerCosts | AbsoluteSumCosts | AbsoluteMaximumCosts, bias: Bias, cost_bounds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], classes: int) -> None: ...

    @property
    def loss(self) -> WestonWatkins | CrammerSinger | OneVsRest | AbsoluteSum | AbsoluteMaximum | SquaredWestonWatkins | SquaredCrammerSinger | SquaredOneVsRest | WestonWatkinsCosts | CrammerSingerCosts | AbsoluteSumCosts | AbsoluteMaximumCosts:
        """What a row of scores costs."""

    @property
    def bias(self) -> Bias:
        """What the scores have besides the weights."""

    @property
    def classes(self) -> int:
        """Columns of scores."""

class RowStart:
    """Rows of coefficients of some examples to start from, and a free bias."""

    def __init__(self, support: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class JointResult:
    """A trained joint machine."""

    @property
    def support(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Examples with a coefficient, in the session's numbering."""

    @property
    def rows(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """Their coefficients, a row of one for each class."""

    @property
    def intercept(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Of each class."""

    @property
    def primal(self) -> float:
        """Objective."""

    @property
    def dual(self) -> float:
        """Objective, maximised."""

    @property
    def violation(self) -> float:
        """Of the optimality conditions, Hsu & Lin (21)."""

    @property
    def iterations(self) -> int:
        """Exact steps."""

    @property
    def bias_steps(self) -> int:
        """Proximal steps on a free bias."""

    @property
    def status(self) -> Status:
        """Why it ended."""

    @property
    def evaluations(self) -> int:
        """Kernel values computed."""

    @property
    def single_precision(self) -> bool:
        """Whether kernel values were float32."""

    @property
    def whole_matrix(self) -> bool:
        """Whether the whole kernel matrix was there."""

    @property
    def interior_point(self) -> bool:
        """Whether an interior-point method took over."""

class LinearMethod(enum.Enum):
    """How a linear machine is trained."""

    sequential_dual = 0

    exponentiated_gradient = 1
    """No free bias, no warm start."""

class LinearSettings:
    """How a linear machine is trained, and how far."""

    def __init__(self, *, method: LinearMethod = LinearMethod.sequential_dual, gap: float = 0.001, violation: float = float('inf'), max_visits: int = -1, seed: int = 0, shuffling: bool = True, shrinking: bool = True, cooling: bool = True, newton: bool = True, newton_from: int = 2048) -> None: ...

    @property
    def method(self) -> LinearMethod:
        """The solver."""

    @method.setter
    def method(self, arg: LinearMethod, /) -> None: ...

    @property
    def gap(self) -> float:
        """Relative duality gap to stop at."""

    @gap.setter
    def gap(self, arg: float, /) -> None: ...

    @property
    def violation(self) -> float:
        """Violation to stop at, by way of finer gaps; inf: the gap counts."""

    @violation.setter
    def violation(self, arg: float, /) -> None: ...

    @property
    def max_visits(self) -> int:
        """Visits to examples; -1: no limit."""

    @max_visits.setter
    def max_visits(self, arg: int, /) -> None: ...

    @property
    def seed(self) -> int:
        """Of the random order."""

    @seed.setter
    def seed(self, arg: int, /) -> None: ...

    @property
    def shuffling(self) -> bool:
        """A random order anew in each loop; if not, the given one."""

    @shuffling.setter
    def shuffling(self, arg: bool, /) -> None: ...

    @property
    def shrinking(self) -> bool:
        """Loops over examples whose coefficients are between their limits."""

    @shrinking.setter
    def shrinking(self, arg: bool, /) -> None: ...

    @property
    def cooling(self) -> bool:
        """These loops go on to a tolerance that falls step by step."""

    @cooling.setter
    def cooling(self, arg: bool, /) -> None: ...

    @property
    def newton(self) -> bool:
        """With few features, Newton steps when the gap is small."""

    @newton.setter
    def newton(self, arg: bool, /) -> None: ...

    @property
    def newton_from(self) -> int:
        """Fewer examples take no Newton steps, unless C is large."""

    @newton_from.setter
    def newton_from(self, arg: int, /) -> None: ...

class LinearProblem:
    """A linear machine, trained without kernel values."""

    def __init__(self, loss: WestonWatkins | CrammerSinger | OneVsRest | AbsoluteSum | AbsoluteMaximum | SquaredWestonWatkins | SquaredCrammerSinger | SquaredOneVsRest | WestonWatkinsCosts | CrammerSingerCosts | AbsoluteSumCosts | AbsoluteMaximumCosts, bias: Bias, cost_bounds: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], classes: int) -> None: ...

    @property
    def loss(self) -> WestonWatkins | CrammerSinger | OneVsRest | AbsoluteSum | AbsoluteMaximum | SquaredWestonWatkins | SquaredCrammerSinger | SquaredOneVsRest | WestonWatkinsCosts | CrammerSingerCosts | AbsoluteSumCosts | AbsoluteMaximumCosts:
        """What a row of scores costs."""

    @property
    def bias(self) -> Bias:
        """What the scores have besides the weights."""

    @property
    def classes(self) -> int:
        """Columns of scores."""

class LinearResult:
    """A trained linear machine."""

    @property
    def weights(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """A row for each feature, a column for each class."""

    @property
    def intercept(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Of each class."""

    @property
    def starts(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """The coefficients of example i are [starts[i], starts[i + 1])."""

    @property
    def columns(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """The class of each coefficient."""

    @property
    def coefficients(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Those that are not zero."""

    @property
    def primal(self) -> float:
        """Objective."""

    @property
    def dual(self) -> float:
        """Objective, maximised."""

    @property
    def violation(self) -> float:
        """Of the optimality conditions, by the worst example."""

    @property
    def visits(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Visits to examples, for each class."""

    @property
    def status(self) -> Status:
        """Why it ended."""

    @property
    def single_precision(self) -> bool:
        """Whether the solver worked in float32."""

def train_linear(data: Data, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], problem: LinearProblem, settings: LinearSettings, *, start: RowStart | None = None, threads: int = 1, time_limit: float = float('inf'), progress: Callable[[int, int, int, float], bool] | None = None) -> LinearResult:
    """Train a linear machine without kernel values."""

@overload
def kernel_values(data: Data, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], vectors: Data, kernel: Kernel, out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None: ...

@overload
def kernel_values(data: Data, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], vectors: Data, kernel: Kernel, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int) -> None:
    """
    Write the kernel values of some rows with all vectors to `out`, in its precision.
    """

class Elimination(enum.Enum):
    """How pairs of classes are asked until one class is left."""

    dag = 0

    adag = 1

class ScoreErrors:
    """
    How far off scores may be: min(unit * (size * masses + |intercepts|), largest).
    """

    def __init__(self, unit: float, masses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], largest: float) -> None: ...

class Scorer:
    """A model that is ready to score: what every prediction needs is kept."""

    def __init__(self, vectors: Data, kernel: Kernel, coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], ranges: Annotated[NDArray[numpy.int64], dict(shape=(None, 2), order='C', device='cpu', writable=False)], column_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], intercepts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @staticmethod
    def are_few(rows: int) -> bool:
        """
        Whether so few rows are taken one by one: without BLAS, unless sums must be the same.
        """

    def scores(self, data: Data, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], sizes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], accuracy: float, threads: int, same_sums: bool) -> None:
        """
        Write the scores of some rows, or all, and the sizes of rounding in their kernel values.
        """

    def eliminate(self, data: Data, rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, rule: Elimination, errors: ScoreErrors, classes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], uncertain: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], accuracy: float, threads: int) -> None:
        """
        Write the classes of some rows, or all, and whether rounding could have led elsewhere.
        """

class SparseExamples:
    """Labels, and examples as the arrays of a CSR matrix."""

    @property
    def labels(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Of each row."""

    @property
    def row_starts(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))] | Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """The entries of row i are [row_starts[i], row_starts[i + 1])."""

    @property
    def columns(self) -> Annotated[NDArray[numpy.int32], dict(shape=(None,))] | Annotated[NDArray[numpy.int64], dict(shape=(None,))]:
        """Of each entry."""

    @property
    def values(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Of each entry."""

    @property
    def features(self) -> int:
        """Columns of the matrix."""

class SvmlightReader:
    """A reader of the text format of svmlight and LIBSVM."""

    def __init__(self, zero_based: bool) -> None: ...

    def feed(self, text: bytes) -> None:
        """Read a piece of the text; ValueError names line and column."""

    def finish(self) -> SparseExamples:
        """Return what was read."""

def instruction_set() -> str:
    """Return what the vectorised loops run on."""

def compiler() -> str:
    """Return what the core was compiled with."""
