"""A bundle as one page that anyone can open: from what is public alone, without a network."""
