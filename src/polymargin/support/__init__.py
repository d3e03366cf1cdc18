"""What every part of the package may use: threads, memory, progress, examples."""
