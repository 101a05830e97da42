"""How noise is made: one file and one proof for each mechanism, over an exact sampler and a secure bit source."""
