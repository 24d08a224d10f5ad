"""Servers on loopback with the strict behaviour of account services; they need the standard library only."""
