"""What all test programs share: processes, an upstream, checks with their results, requests, certificates and tools."""
