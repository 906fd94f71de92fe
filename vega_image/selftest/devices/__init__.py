"""What computes: the processor, a card, a recording."""
