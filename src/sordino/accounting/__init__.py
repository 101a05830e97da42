"""How losses add: certified composition, closed forms, filters for adaptive use, calibration."""
