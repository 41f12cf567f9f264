"""What several strategies learn with: networks, embeddings, training, counts. All of it is torch, and knows no game."""
