"""Sources of images: archives read in place, and image folders."""
