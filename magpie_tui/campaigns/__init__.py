"""Campaigns: the nine steps from a baseline to a judged gain, as links and decisions in one small file."""
