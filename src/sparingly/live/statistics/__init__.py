"""How an agent is doing: counts of tickets and estimates from them."""
