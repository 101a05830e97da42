"""The lecture notes' pictures: lines and numbers, computed by the library, from public choices only."""
