"""Files: models as safetensors, as LIBSVM's texts and as ONNX graphs, and data."""

from polymargin.storage.data_files import read_data
from polymargin.storage.libsvm_file import export_libsvm, import_libsvm
from polymargin.storage.onnx_converters import register_onnx_converters
from polymargin.storage.onnx_file import export_onnx
from polymargin.storage.safetensors_file import load_model, save_model

__all__ = [
    "export_libsvm",
    "export_onnx",
    "import_libsvm",
    "load_model",
    "read_data",
    "register_onnx_converters",
    "save_model",
]
