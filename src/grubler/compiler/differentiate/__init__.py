"""Products with derivatives of a tape, by one rule an operation (`slopes` in ir/ops.py).

    forward    values and tangents:  ẏ = J ẋ
    reverse    values and adjoints:  x̄ = Jᵀ ȳ

Both run the tape on numbers or on symbols. On symbols they are traced themselves, so that a
derivative compiles for every target, stands inside other functions, and has derivatives of its own.
"""

from .forward import forward
from .replay import NoDerivative, replay
from .reverse import reverse

__all__ = ["NoDerivative", "forward", "replay", "reverse"]
