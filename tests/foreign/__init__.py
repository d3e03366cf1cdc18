"""The tests of other packages, run against our classes; see run.py."""
