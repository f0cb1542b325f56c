"""Descriptions of robots as text: readers that make a `Model`, writers, and state converters."""

from ._report import FormatWarning
from .urdf import load_urdf

__all__ = ["FormatWarning", "load_urdf"]
