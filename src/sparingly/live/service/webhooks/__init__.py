"""Webhooks: messages to programs that want to hear what became of tickets, kept until they have arrived."""
