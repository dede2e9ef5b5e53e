"""Shows one verdict as one HTML page; knows the models and nothing else of the service."""
