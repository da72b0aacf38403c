"""What upstream makes of TraceLens in a workspace: the same files, by us or by an installed TraceLens."""
