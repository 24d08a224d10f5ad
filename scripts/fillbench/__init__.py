"""The black-box measure of fills: what Larder asks of an upstream, and how long readers wait."""
