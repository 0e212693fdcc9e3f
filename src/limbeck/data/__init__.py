"""What comes in: public schemas, sources of records, and the wrapper around private ones."""
