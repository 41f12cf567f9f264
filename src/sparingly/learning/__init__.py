"""What is learned: networks, embeddings, training, counts. Everything here is torch; nothing here knows a game."""
