"""The model: bodies in clusters, built from a description and never changed."""

from .model import Model as Model
from .model import as_position as as_position
from .model import as_vector as as_vector
