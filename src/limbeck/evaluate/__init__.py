"""What a release is worth: scores on real records that it was not made from.

Scores on private test records are not private. They are never written into a bundle.
"""
