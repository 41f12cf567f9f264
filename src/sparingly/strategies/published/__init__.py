"""Published algorithms, one a file: of partial monitoring, of selective sampling, and for several experts."""
