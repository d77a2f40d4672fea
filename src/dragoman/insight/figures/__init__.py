"""What each figure of the paper and its lectures shows, computed: ``catalogue.py`` lists them."""
