"""What `fairlead doctor` asks servers, and how it repairs what it finds."""
