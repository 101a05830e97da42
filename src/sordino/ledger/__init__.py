"""What was spent: charges, receipts and stored answers."""
