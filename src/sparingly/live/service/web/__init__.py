"""What stands between HTTP and the routes: middleware, batching, events, error responses."""
