"""Descriptions of robots as text: readers that make a `Model`."""

from ._xml import FormatWarning
from .urdf import load_urdf

__all__ = ["FormatWarning", "load_urdf"]
