"""Black-box benchmark of fills: upstream traffic and waiting times of readers."""
