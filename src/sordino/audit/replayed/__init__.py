"""Record and replay: a pipeline on two data with the same outputs of its mechanisms."""
