"""The routes of the service and their wire models."""
