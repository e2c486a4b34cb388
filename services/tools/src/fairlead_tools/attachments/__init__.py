"""Takes what the attachments of a prompt name: files, folders, pages, resources and stored images."""
