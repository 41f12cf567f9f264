"""Who may call: tokens, sessions, rate limits."""
