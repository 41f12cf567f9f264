"""Who decides for an agent and who trains: inline, in the background, or in another process."""
