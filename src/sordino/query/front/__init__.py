"""From text or Python to the query tree: the two front ends and what they share."""
