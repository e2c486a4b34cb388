"""What guards commits when they are kept, copied or moved."""
