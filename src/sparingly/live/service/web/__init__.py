"""What stands between HTTP and the routes: middleware, server-sent events, metrics, error responses."""
