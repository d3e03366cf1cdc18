"""What is optimised."""
