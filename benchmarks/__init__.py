"""What is measured: times against their limits, and ratios to other ways taken in the same run."""
