"""Finite features of a kernel: transformers whose features' scalar products are, or approach, the kernel."""

from polymargin.features.transformers import CholeskyFeatures, KernelPCAFeatures, SubsetFeatures

__all__ = ["CholeskyFeatures", "KernelPCAFeatures", "SubsetFeatures"]
