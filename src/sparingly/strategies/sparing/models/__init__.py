"""The models that hold what Sparing believes: networks, kernels and trees, each blind to one fold of the labels."""
