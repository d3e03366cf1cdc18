"""What is kept of a fit: validated, and able to score."""
