"""The MIOpen find-db: what MIOpen looks up instead of measuring, and which of it is proven."""
