"""Many adaptive questions to one sample: answers that hold for the population, not only for the rows at hand."""
