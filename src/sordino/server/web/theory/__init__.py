"""The lecture notes' pictures: what is drawn and every number beside it, computed by the library, from public choices only."""
