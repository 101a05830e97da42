"""Reports: what they hold, and how they are written for terminals, pages, files and charts."""
