"""Painting: a caption in, pictures out, as OpenAI's clients ask for them."""
