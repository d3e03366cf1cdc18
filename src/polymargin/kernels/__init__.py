"""Kernels: their names, their numbers, their values."""
