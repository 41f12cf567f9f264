"""What makes the pages: their pictures, and the notebooks among them."""
