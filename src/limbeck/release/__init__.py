"""What is published: the bundle, its files, its data card and its report."""
