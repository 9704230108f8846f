"""Measurements of the whole system; `make bench` runs them. They assert nothing: they print figures with their aims."""
