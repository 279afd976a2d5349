"""The version of HEC; the same as in CMakeLists.txt (a test compares them)."""

__version__ = "0.1.0"
