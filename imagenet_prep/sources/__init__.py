"""Where the images come from: archives read in place, or image folders."""
