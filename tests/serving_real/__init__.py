"""Tests against a real engine on this CPU: ``make test-serving``."""
