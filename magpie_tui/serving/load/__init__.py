"""The load generator: requests sent on a schedule, answers timed as they stream in, one row a request."""
