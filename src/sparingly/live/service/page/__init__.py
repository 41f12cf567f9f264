"""The page on which people answer, and the dashboard."""
