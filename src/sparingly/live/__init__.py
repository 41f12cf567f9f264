"""How one strategy serves real people: an agent over a journal, a service, a page."""
