"""What transformers imports with FlashAttention."""
