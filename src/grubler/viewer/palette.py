"""Colours: a hue for each cluster of several bodies, grey for single bodies, rotors darker."""

from __future__ import annotations

import colorsys

from ..model import Model

Colour = tuple[int, int, int]

SINGLE: Colour = (150, 158, 170)  # a body that is a cluster of its own
GROUND: Colour = (110, 114, 120)
INDEPENDENT: Colour = (255, 196, 0)  # pins of joints that have a slider
DEPENDENT: Colour = (58, 62, 70)  # pins of joints that follow
CLOSED: Colour = (20, 22, 26)
OPEN: Colour = (224, 32, 48)

GOLDEN = 0.6180339887498949  # turns of hue apart, so that neighbours differ most
FIRST_HUE = 0.58


def cluster_colours(model: Model) -> list[Colour]:
    """A colour for each cluster, in their order."""
    colours, count = [], 0
    for cluster in model.clusters:
        if len(cluster.bodies) == 1:
            colours.append(SINGLE)
        else:
            colours.append(_hue(FIRST_HUE + GOLDEN * count))
            count += 1
    return colours


def _hue(turns: float) -> Colour:
    red, green, blue = colorsys.hls_to_rgb(turns % 1.0, 0.52, 0.62)
    return round(red * 255), round(green * 255), round(blue * 255)


def darker(colour: Colour, share: float = 0.62) -> Colour:
    red, green, blue = colour
    return round(red * share), round(green * share), round(blue * share)


def css(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
