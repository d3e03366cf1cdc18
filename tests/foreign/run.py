"""Run the tests of scikit-learn against our classes and count how they come out.

python tests/foreign/run.py [suite ...] [--page docs/foreign_suites.md] [-- options of pytest]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import sklearn  # noqa: E402

from foreign import page, suites  # noqa: E402


def run_suite(attribute: str, processes: int, options: list[str]) -> page.Result:
    """Run a suite in a process of its own: classes stay replaced for good."""
    suite = getattr(suites, attribute)
    # Workers of joblib have to find the adapters too.
    path = os.pathsep.join([str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "MPLBACKEND": "Agg", "SCIPY_ARRAY_API": "1"}
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.json"
        command = [sys.executable, "-m", "pytest", "-c", HERE / "suites.ini", "--rootdir", _root(suite.tests)]
        command += ["-p", "foreign.plugin", f"--foreign-suite=foreign.suites:{attribute}"]
        command += [f"--foreign-results={results}", "--numprocesses", str(processes), *options]
        command += [str(HERE / test) if test.endswith(".py") else test for test in suite.tests]
        subprocess.run([*command, "--pyargs"], env=environment, check=False)
        answer = json.loads(results.read_text()) if results.exists() else {"counts": {}, "entries": {}, "failed": True}
    return page.Result(suite, **answer, seconds=time.perf_counter() - started)


def _root(tests: tuple[str, ...]) -> Path:
    """Return the folder that names of tests begin from."""
    return HERE if tests[0].endswith(".py") else Path(sklearn.__file__).parents[1]


def main() -> int:
    """Run what was asked for; return 1 if anything came out differently than it should."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("suite", nargs="*", help=f"any of {', '.join(suites.ALL)}; all of them if none is named")
    parser.add_argument("--page", type=Path, help="write the table to this page of the docs")
    parser.add_argument("--processes", type=int, default=2)
    arguments, options = parser.parse_known_args()
    results = [run_suite(name, arguments.processes, options) for name in arguments.suite or suites.ALL]
    print("\n" + page.table(results))
    if arguments.page is not None:
        arguments.page.write_text(page.page(results))
    bad = [result.suite.name for result in results if result.failed]
    print(f"\nunexpected: {', '.join(bad)}" if bad else "\nno unexpected difference")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
