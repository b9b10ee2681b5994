"""One visit to one case: inputs, clock, memory, accuracy, and the process that it happens in."""
