"""The training text of a recipe, prepared in parts: read, cleaned, cut into tokens, stored.

Each stage is a kind of work for the driver, and begins when all parts of the one before stand:

    fingerprints   of each corpus
    read           lines -> examples that pass the filters, and a hash of each
    duplicates     hashes of one range, of all parts -> which examples are there already
    encode         examples -> tokens, by vocabularies that were learned of a sample before
    shards         tokens of several parts -> the files of one shard of the store
"""
