"""Descriptions of robots as text: readers that make a `Model`, writers, and state converters."""

from . import convert
from ._load import describe, load
from ._report import FormatWarning
from ._save import save
from .urdf import load_urdf

__all__ = ["FormatWarning", "convert", "describe", "load", "load_urdf", "save"]
