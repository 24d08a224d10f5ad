"""Larder and nginx side by side: processor time, speed and memory of reads."""
