"""Quality of people: second opinions, disagreements, known-answer items, agreement, and who is careless."""
