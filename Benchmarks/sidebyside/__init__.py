"""Larder and nginx side by side: what a read costs in processor time, how fast it is, and what memory it takes."""
