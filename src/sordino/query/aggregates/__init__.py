"""What can be asked of the rows of a group: from exact sums to noisy estimates with intervals."""
