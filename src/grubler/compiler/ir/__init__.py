"""The compiler's intermediate representation: what a traced function is between passes."""
