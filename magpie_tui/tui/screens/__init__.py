"""One screen a place, and what is opened from it."""
