"""Programs that use a service: the client, its wire format, and simulated people."""
