"""What a mechanism is made of: joints, bodies, loops, shapes."""
