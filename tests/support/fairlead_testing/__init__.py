"""What tests of several packages share: real servers and events to write."""
