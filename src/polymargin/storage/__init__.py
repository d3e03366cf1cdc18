"""Models on disk: safetensors files of every machine, LIBSVM's text files of one-against-one. Data sets in files."""

from polymargin.storage.data_files import read_data
from polymargin.storage.libsvm_file import export_libsvm, import_libsvm
from polymargin.storage.safetensors_file import load_model, save_model

__all__ = ["export_libsvm", "import_libsvm", "load_model", "read_data", "save_model"]
