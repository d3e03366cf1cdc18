"""Numbers that Hsu & Lin 2002 printed, for the tables that are drawn again here."""

from typing import NamedTuple


class Training(NamedTuple):
    """Seconds of training (Pentium III-500) and unique support vectors of one method on one data set."""

    seconds: float
    n_support: float


METHODS = ("one-against-one", "DAG", "one-against-all", "Weston-Watkins", "Crammer-Singer")


def methods(*numbers: float) -> dict[str, Training]:
    """A line of Table V.3: seconds and support vectors of one method after the other."""
    pairs = zip(numbers[::2], numbers[1::2], strict=True)
    return {name: Training(*pair) for name, pair in zip(METHODS, pairs, strict=True)}


TRAINING = {
    "iris": methods(0.04, 16.9, 0.04, 15.6, 0.10, 16.0, 0.15, 16.2, 16.84, 27.8),
    "wine": methods(0.12, 56.3, 0.13, 56.5, 0.20, 29.2, 0.28, 54.5, 0.39, 41.6),
    "glass": methods(2.42, 112.5, 2.85, 114.2, 10.00, 129.0, 7.94, 124.1, 7.60, 143.3),
    "vowel": methods(2.63, 345.3, 3.98, 365.1, 9.28, 392.6, 14.05, 279.4, 20.54, 391.0),
    "vehicle": methods(19.73, 302.4, 35.18, 293.1, 142.50, 343.0, 88.61, 264.2, 1141.76, 264.9),
    "segment": methods(17.10, 442.4, 23.25, 266.8, 68.85, 446.3, 66.43, 358.2, 192.47, 970.3),
    "dna": methods(10.60, 967, 10.74, 967, 23.47, 1152, 13.5, 951, 16.27, 945),
    "satimage": methods(24.85, 1611, 25.1, 1611, 136.42, 2170, 48.21, 1426, 89.58, 2670),
    "letter": methods(298.08, 8931, 298.62, 8931, 1831.80, 10129, 8786.20, 7627, 1227.12, 6374),
    "shuttle": methods(170.45, 301, 168.87, 301, 202.96, 330, 237.80, 202, 2205.78, 198),
}
"""Table V.3. The first six are means over the ten folds of a cross-validation: nine tenths of the rows."""


class Choice(NamedTuple):
    """Exponents of two of the best C and gamma, and the rate in per cent."""

    C: int
    gamma: int
    rate: float


def choices(*numbers: float) -> dict[str, Choice]:
    """A line of Table V.2: exponents and rate of one method after the other."""
    triples = zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)
    return {name: Choice(int(c), int(g), rate) for name, (c, g, rate) in zip(METHODS, triples, strict=True)}


CHOICES = {
    "iris": choices(12, -9, 97.333, 12, -8, 96.667, 9, -3, 96.667, 12, -8, 97.333, 10, -7, 97.333),
    "wine": choices(7, -10, 99.438, 6, -9, 98.876, 7, -6, 98.876, 0, -2, 98.876, 1, -3, 98.876),
    "glass": choices(11, -2, 71.495, 12, -3, 73.832, 11, -2, 71.963, 9, -4, 71.028, 4, 1, 71.963),
    "vowel": choices(4, 0, 99.053, 2, 2, 98.674, 4, 1, 98.485, 3, 0, 98.485, 1, 3, 98.674),
    "vehicle": choices(9, -3, 86.643, 11, -5, 86.052, 11, -4, 87.470, 10, -4, 86.998, 9, -4, 86.761),
    "segment": choices(6, 0, 97.403, 11, -3, 97.359, 7, 0, 97.532, 5, 0, 97.576, 0, 3, 97.316),
    "dna": choices(3, -6, 95.447, 3, -6, 95.447, 2, -6, 95.784, 4, -6, 95.616, 1, -6, 95.869),
    "satimage": choices(4, 0, 91.3, 4, 0, 91.25, 2, 1, 91.7, 3, 0, 91.25, 2, 2, 92.35),
    "letter": choices(4, 2, 97.98, 4, 2, 97.98, 2, 2, 97.88, 1, 2, 97.76, 3, 2, 97.68),
    "shuttle": choices(11, 3, 99.924, 11, 3, 99.924, 9, 4, 99.910, 9, 4, 99.910, 12, 4, 99.938),
}
"""Table V.2. Best rates of ten folds for the first six, rates on the test part for the others."""


class Iterations(NamedTuple):
    """Iterations without a bias, (17), and with a regularised one, (24)."""

    without: int
    regularized: int


ITERATIONS = {
    "dna": Iterations(8653, 15475),
    "satimage": Iterations(13109, 27751),
    "letter": Iterations(16341, 26424),
    "shuttle": Iterations(163394, 286734),
}
"""Table VI.5: Crammer-Singer at the parameters of Table V.2."""
RELAXED = {"letter": 0.1, "shuttle": 0.1}
"""Tolerance of Crammer-Singer where it is not 1e-3 (section V.A)."""
