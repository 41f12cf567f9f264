"""Published algorithms, one a file: of partial monitoring, and of selective sampling."""
