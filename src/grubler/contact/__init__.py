"""Contact: Coulomb's law at candidate points, with the loops of a mechanism inside its clusters."""
