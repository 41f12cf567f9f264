"""The page on which people answer, the dashboard, and the other pages for admins."""
