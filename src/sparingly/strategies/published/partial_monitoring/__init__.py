"""Published algorithms for any partial monitoring game: CBP and its heirs, NeuralCBP, FeedExp3, TSPM."""
