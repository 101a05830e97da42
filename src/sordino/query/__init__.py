"""What is asked: the owner's declaration, the query tree, its two front ends, functions and aggregates."""
